<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * Text that says nothing, such as a field of a form that was left empty.
 *
 * @internal
 */
final class Blank
{
    /** The white space of ECMAScript, so that all languages agree. */
    private const WHITE_SPACE = '\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}';

    /** Whether a value is text that is empty or only white space. */
    public static function is(mixed $value): bool
    {
        return is_string($value) && preg_match('/^[' . self::WHITE_SPACE . ']*$/Du', $value) === 1;
    }
}
