<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Internal\AsWritten;
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

    /** Captures that are nested more deeply are shown as unreadable, because the parsers of the languages differ. */
    private const MAX_DEPTH = 100;

    /**
     * @param LeadCapture|array<string, mixed> $capture
     *
     * @throws \InvalidArgumentException when it cannot be stored
     */
    public static function encode(#[\SensitiveParameter] LeadCapture|array $capture): string
    {
        try {
            $data = $capture instanceof LeadCapture ? $capture->jsonSerialize() : $capture;
            $json = json_encode(AsWritten::of($data), JSON_THROW_ON_ERROR);
        } catch (\JsonException $error) {
            // Without the previous exception, whose trace has the lead.
            throw new \InvalidArgumentException("the lead cannot be stored: {$error->getMessage()}");
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

    /** Returns equal text for equal data, in all languages. @param LeadCapture|array<string, mixed> $capture */
    public static function canonical(#[\SensitiveParameter] LeadCapture|array $capture): string
    {
        $flags = JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_LINE_TERMINATORS;
        return json_encode(self::plain(json_decode(self::encode($capture), true)), $flags);
    }

    /** @return ?array<string, mixed> null when the text is not a JSON object */
    public static function decode(#[\SensitiveParameter] string $json): ?array
    {
        $capture = json_decode($json);
        return $capture instanceof \stdClass ? json_decode($json, true) : null;
    }

    /** @return ?\stdClass null when other languages may render the text as other JSON */
    public static function portable(#[\SensitiveParameter] string $json): ?\stdClass
    {
        $capture = json_decode($json, depth: self::MAX_DEPTH + 1);
        // 1e400 is infinite here, and has no JSON.
        return $capture instanceof \stdClass && json_encode($capture) !== false ? $capture : null;
    }

    /**
     * Whether two texts are the same data of a visitor: the order of members and escapes do not matter, and null equals
     * absent.
     */
    public static function areSame(#[\SensitiveParameter] string $one, #[\SensitiveParameter] string $other): bool
    {
        [$first, $second] = [self::decode($one), self::decode($other)];
        return $first !== null && $second !== null
            && self::plain($first) === self::plain($second);
    }

    private static function plain(#[\SensitiveParameter] mixed $value): mixed
    {
        if (!is_array($value)) {
            return $value;
        }
        $plain = array_map(self::plain(...), $value);
        if (array_is_list($value)) {
            return $plain;
        }
        $plain = array_filter($plain, static fn (mixed $each): bool => $each !== null);
        ksort($plain, SORT_STRING);
        return $plain;
    }
}
