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
    /** As the service knows them: versions 1 to 8 of the standard variant, the nil UUID and the max UUID. */
    private const PATTERN = '/^([0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
        . '|0{8}-0{4}-0{4}-0{4}-0{12}|f{8}-f{4}-f{4}-f{4}-f{12})$/Di';

    /** A random one (version 4). */
    public static function random(): string
    {
        return self::of(random_bytes(16), version: 4);
    }

    /** The one that a hash stands for (version 8): its first 16 bytes count. */
    public static function fromHash(string $hash): string
    {
        return self::of(substr($hash, 0, 16), version: 8);
    }

    /** One that was given, in lower case; null when it is none. */
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
