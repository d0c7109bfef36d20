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
    /** The UUIDs the service accepts: versions 1 to 8 of the standard variant, nil and max. */
    private const PATTERN = '/^([0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
        . '|0{8}-0{4}-0{4}-0{4}-0{12}|f{8}-f{4}-f{4}-f{4}-f{12})$/Di';

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

    /** Returns a UUID in lower case; null when the text is not one. */
    public static function from(?string $text): ?string
    {
        return preg_match(self::PATTERN, (string) $text) ? strtolower($text) : null;
    }

    private static function of(string $bytes, int $version): string
    {
        $bytes[6] = chr(ord($bytes[6]) & 0x0f | $version << 4);
        $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);
        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
    }
}
