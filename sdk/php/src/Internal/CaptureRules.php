<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * The patterns that the texts of a creation must match, with the message and the code for a text that does not.
 * Generated from common/rules/field-rules.ts. Do not edit.
 *
 * @internal
 */
final class CaptureRules
{
    public const RULES = [
        'displayName' => [
            ['/^\P{Cs}*$/Du', 'must be well-formed Unicode (it contains half of a surrogate pair)', 'malformed'],
            ['/^[^\0]*$/Du', 'must not contain the NUL character', 'malformed'],
            ['/^[\s\S]{1,160}$/Du', 'must be 1 to 160 characters long', 'wrong_length'],
            [
                '/^[\s\S]*[^\x{0000}-\x{0020}\x{007f}-\x{00a0}\x{00ad}\x{034f}\x{061c}\x{115f}-\x{1160}\x{1680}\x{17b4}-\x{17b5}\x{180b}-\x{180f}\x{2000}-\x{200f}\x{2028}-\x{202f}\x{205f}-\x{206f}\x{3000}\x{3164}\x{fe00}-\x{fe0f}\x{feff}\x{ffa0}\x{fff0}-\x{fff8}\x{1bca0}-\x{1bca3}\x{1d173}-\x{1d17a}\x{e0000}-\x{e0fff}]/Du',
                'must have a visible character',
                'not_visible',
            ],
        ],
        'email' => [
            ['/^\P{Cs}*$/Du', 'must be well-formed Unicode (it contains half of a surrogate pair)', 'malformed'],
            ['/^[^\0]*$/Du', 'must not contain the NUL character', 'malformed'],
            ['/^[\s\S]{1,254}$/Du', 'must be 1 to 254 characters long', 'wrong_length'],
            ['/^[^@]+@[^@]+$/Du', 'must have exactly one @ with something on both sides', 'no_email_address'],
            [
                '/^[^\x{0000}-\x{0020}\x{007f}-\x{00a0}\x{1680}\x{2000}-\x{200a}\x{2028}-\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]*$/Du',
                'must not contain white space or control characters',
                'has_white_space',
            ],
        ],
        'phone' => [
            ['/^\P{Cs}*$/Du', 'must be well-formed Unicode (it contains half of a surrogate pair)', 'malformed'],
            ['/^[^\0]*$/Du', 'must not contain the NUL character', 'malformed'],
            ['/^[\s\S]{5,64}$/Du', 'must be 5 to 64 characters long', 'wrong_length'],
            ['/^(?:\P{Nd}*\p{Nd}){3}/Du', 'must contain at least 3 digits', 'too_few_digits'],
        ],
        'sourceId' => [
            [
                '/^(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|0{8}-0{4}-0{4}-0{4}-0{12}|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})$/Du',
                'must be a UUID with hyphens',
                'no_uuid',
            ],
        ],
        'note' => [
            ['/^\P{Cs}*$/Du', 'must be well-formed Unicode (it contains half of a surrogate pair)', 'malformed'],
            ['/^[^\0]*$/Du', 'must not contain the NUL character', 'malformed'],
            ['/^[\s\S]{1,2000}$/Du', 'must be 1 to 2000 characters long', 'wrong_length'],
        ],
    ];

    /** The texts of a creation that may be null, left out or blank. */
    public const OPTIONAL_TEXTS = ['sourceId', 'note'];

    /** Matches blank text: the white space of ECMAScript, so that all languages agree. */
    public const BLANK = '/^[\x{0009}-\x{000d}\x{0020}\x{00a0}\x{1680}\x{2000}-\x{200a}\x{2028}-\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]*$/Du';
}
