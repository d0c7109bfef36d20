<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * The fields of a creation that the lead in its response repeats.
 *
 * @internal
 */
final class Repeated
{
    private const FIELDS = ['displayName', 'sourceId', 'note'];

    /**
     * Returns the lead, unless it is that of another request whose response came instead. The service changes no text but the
     * letter case of `sourceId`. A field that is missing or not as documented proves nothing.
     *
     * @param array<mixed> $lead
     * @return array<mixed>
     */
    public static function in(#[\SensitiveParameter] array $lead, #[\SensitiveParameter] mixed $capture): array
    {
        foreach (is_array($capture) ? self::FIELDS : [] as $name) {
            $value = $lead[$name] ?? null;
            $isDocumented = is_string($value) || array_key_exists($name, $lead) && $value === null && $name !== 'displayName';
            if ($isDocumented && self::inOneCase($name, $value) !== self::inOneCase($name, $capture[$name] ?? null)) {
                throw new \UnexpectedValueException("another $name");
            }
        }
        return $lead;
    }

    private static function inOneCase(string $name, #[\SensitiveParameter] mixed $value): mixed
    {
        return $name === 'sourceId' && is_string($value) ? strtolower($value) : $value;
    }
}
