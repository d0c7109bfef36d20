<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * What a visitor wrote in a form.
 *
 * @internal
 */
final class AsWritten
{
    /**
     * Forms post fields left empty, which the service refuses, and each line break as two characters although `maxlength`
     * counts one.
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
