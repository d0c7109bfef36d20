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
        $bytes = random_bytes(16);
        $bytes[6] = chr(ord($bytes[6]) & 0x0f | 0x40);
        $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);
        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
    }

    /** One that was given, in lower case; null when it is none. */
    public static function from(?string $text): ?string
    {
        return preg_match(self::PATTERN, (string) $text) ? strtolower($text) : null;
    }
}
