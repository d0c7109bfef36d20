<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * The fields of a creation that the lead in its response repeats. `/v1` never adds one.
 *
 * @internal
 */
final class Repeated
{
    /**
     * Returns the lead, unless it belongs to another request whose response came instead.
     *
     * @param array<mixed> $lead
     * @return array<mixed>
     */
    public static function in(#[\SensitiveParameter] array $lead, #[\SensitiveParameter] mixed $capture): array
    {
        $other = is_array($capture) ? self::other($lead, $capture) : null;
        return $other === null ? $lead : throw new \UnexpectedValueException("another $other");
    }

    /**
     * Returns the first field of a lead that differs from the capture; null: there is none. The service changes only the letter
     * case of `sourceId`. A missing or undocumented value proves nothing.
     *
     * @param array<mixed> $lead
     * @param array<mixed> $capture
     */
    public static function other(#[\SensitiveParameter] array $lead, #[\SensitiveParameter] array $capture): ?string
    {
        foreach (['displayName', 'sourceId', 'note'] as $name) {
            $value = $lead[$name] ?? null;
            $isDocumented = is_string($value) || array_key_exists($name, $lead) && $value === null && $name !== 'displayName';
            if ($isDocumented && self::inOneCase($name, $value) !== self::inOneCase($name, $capture[$name] ?? null)) {
                return $name;
            }
        }
        return null;
    }

    private static function inOneCase(string $name, #[\SensitiveParameter] mixed $value): mixed
    {
        return $name === 'sourceId' && is_string($value) ? strtolower($value) : $value;
    }
}
