<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * Removes what forms add to a visitor's text.
 *
 * @internal
 */
final class AsWritten
{
    /**
     * Removes fields left empty, which the service refuses, and the second character of each line break, which `maxlength`
     * does not count.
     *
     * @param array<string, mixed> $data
     * @return array<string, mixed>
     */
    public static function of(#[\SensitiveParameter] array $data): array
    {
        foreach (CaptureRules::OPTIONAL_TEXTS as $field) {
            if (self::isBlank($data[$field] ?? null)) {
                unset($data[$field]);
            }
        }
        if (is_string($data['note'] ?? null)) {
            $data['note'] = str_replace(["\r\n", "\r"], "\n", $data['note']);
        }
        return $data;
    }

    /** Whether a value is text that is empty or only white space. */
    public static function isBlank(#[\SensitiveParameter] mixed $value): bool
    {
        return is_string($value) && preg_match(CaptureRules::BLANK, $value) === 1;
    }
}
