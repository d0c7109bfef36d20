<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\LeadCapture;

/**
 * The encoding of the column `capture`. It is ASCII, so that no connection's character set can alter it.
 *
 * @internal
 */
final class CaptureJson
{
    /** The capacity of MySQL's TEXT. */
    private const MAX_BYTES = 65_535;

    /**
     * @param LeadCapture|array<string, mixed> $capture
     *
     * @throws \InvalidArgumentException when it cannot be stored
     */
    public static function encode(#[\SensitiveParameter] LeadCapture|array $capture): string
    {
        try {
            $json = json_encode($capture, JSON_THROW_ON_ERROR);
        } catch (\JsonException $error) {
            throw new \InvalidArgumentException("the lead cannot be stored: {$error->getMessage()}", previous: $error);
        }
        if (!str_starts_with($json, '{')) {
            throw new \InvalidArgumentException('the lead cannot be stored: it has no named fields');
        }
        if (strlen($json) > self::MAX_BYTES) {
            $most = self::MAX_BYTES;
            throw new \InvalidArgumentException("the lead cannot be stored: as JSON it has more than $most bytes");
        }
        return $json;
    }

    /** @return ?array<string, mixed> null when the text is not a JSON object */
    public static function decode(string $json): ?array
    {
        $capture = json_decode($json);
        return $capture instanceof \stdClass ? json_decode($json, true) : null;
    }

    /** Whether two texts are equivalent: the order of members and escapes do not matter, and null equals absent. */
    public static function areSame(string $one, string $other): bool
    {
        $first = self::decode($one);
        return $first !== null && self::plain($first) === self::plain(self::decode($other));
    }

    private static function plain(mixed $value): mixed
    {
        if (!is_array($value)) {
            return $value;
        }
        $plain = array_map(self::plain(...), $value);
        if (array_is_list($value)) {
            return $plain;
        }
        $plain = array_filter($plain, static fn (mixed $each): bool => $each !== null);
        ksort($plain);
        return $plain;
    }
}
