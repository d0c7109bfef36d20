<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * UUIDs as text.
 *
 * @internal
 */
final class Uuid
{
    /** Returns a random UUID (version 4). */
    public static function random(): string
    {
        return self::of(random_bytes(16), version: 4);
    }

    /** Returns a UUID of the first 16 bytes of a hash (version 8). */
    public static function fromHash(string $hash): string
    {
        return self::of(substr($hash, 0, 16), version: 8);
    }

    /** Returns a UUID that the service accepts in lower case; null when the text is not one. */
    public static function from(?string $text): ?string
    {
        [[$pattern]] = CaptureRules::RULES['sourceId'];
        return preg_match($pattern, (string) $text) ? strtolower($text) : null;
    }

    private static function of(string $bytes, int $version): string
    {
        $bytes[6] = chr(ord($bytes[6]) & 0x0f | $version << 4);
        $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);
        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
    }
}
