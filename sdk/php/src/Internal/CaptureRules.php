<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * What each text of a creation must match, and what is wrong with one that does not.
 * Generated from common/rules/field-rules.ts. Do not edit.
 *
 * @internal
 */
final class CaptureRules
{
    public const RULES = [
        'displayName' => [
            ['/^\P{Cs}*$/Du', 'must be well-formed Unicode (it contains half of a surrogate pair)'],
            ['/^[^\0]*$/Du', 'must not contain the NUL character'],
            ['/^[\s\S]{1,160}$/Du', 'must be 1 to 160 characters long'],
        ],
        'email' => [
            ['/^\P{Cs}*$/Du', 'must be well-formed Unicode (it contains half of a surrogate pair)'],
            ['/^[^\0]*$/Du', 'must not contain the NUL character'],
            ['/^[\s\S]{1,254}$/Du', 'must be 1 to 254 characters long'],
            ['/^[^@]+@[^@]+$/Du', 'must have exactly one @ with something on both sides'],
            [
                '/^[^\x{0000}-\x{0020}\x{007f}-\x{00a0}\x{1680}\x{2000}-\x{200a}\x{2028}-\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]*$/Du',
                'must not contain white space or control characters',
            ],
        ],
        'phone' => [
            ['/^\P{Cs}*$/Du', 'must be well-formed Unicode (it contains half of a surrogate pair)'],
            ['/^[^\0]*$/Du', 'must not contain the NUL character'],
            ['/^[\s\S]{5,64}$/Du', 'must be 5 to 64 characters long'],
            ['/^(?:\P{Nd}*\p{Nd}){3}/Du', 'must contain at least 3 digits'],
        ],
        'sourceId' => [
            [
                '/^(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|0{8}-0{4}-0{4}-0{4}-0{12}|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})$/Du',
                'must be a UUID with hyphens',
            ],
        ],
        'note' => [
            ['/^\P{Cs}*$/Du', 'must be well-formed Unicode (it contains half of a surrogate pair)'],
            ['/^[^\0]*$/Du', 'must not contain the NUL character'],
            ['/^[\s\S]{1,2000}$/Du', 'must be 1 to 2000 characters long'],
        ],
    ];

    /** Text that says nothing: the white space of ECMAScript, so that all languages agree. */
    public const BLANK = '/^[\x{0009}-\x{000d}\x{0020}\x{00a0}\x{1680}\x{2000}-\x{200a}\x{2028}-\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]*$/Du';
}
