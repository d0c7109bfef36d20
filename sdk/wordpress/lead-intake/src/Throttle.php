<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/**
 * Counts the submissions of an hour by the visitor's network: 256 addresses of IPv4, or a /56 of IPv6. Stores one of 65,536 numbers in place
 * of the address: a hash of the network with the website's salt. Two networks may share a number; there are never more rows than numbers.
 */
final class Throttle
{
    /** Far more than the people of one office or of one mobile network send to one website in an hour. */
    private const MOST_PER_HOUR = 20;

    private const IPV4_IN_IPV6 = "\0\0\0\0\0\0\0\0\0\0\xff\xff";

    public static function table(): string
    {
        return Outboxes::table('lead_intake_throttle');
    }

    /** Counts a submission of the present visitor, and returns whether it is one too many. Submissions from unknown addresses never are. */
    public static function isExceeded(): bool
    {
        global $wpdb;
        $network = self::network();
        $most = (int) apply_filters('lead_intake_submissions_per_hour', self::MOST_PER_HOUR);
        if ($network === null || $most < 1) {
            return false;
        }
        $table = self::table();
        $bucket = hexdec(substr(hash_hmac('sha256', $network, wp_salt()), 0, 4));
        $wpdb->query($wpdb->prepare(
            "INSERT INTO $table (bucket, hour, number) VALUES (%d, %d, 1)"
            . ' ON DUPLICATE KEY UPDATE number = IF(hour = VALUES(hour), number + 1, 1), hour = VALUES(hour)',
            $bucket,
            intdiv(time(), HOUR_IN_SECONDS),
        ));
        return (int) $wpdb->get_var($wpdb->prepare("SELECT number FROM $table WHERE bucket = %d", $bucket)) > $most;
    }

    /** Whether nothing is counted, because the visitor's address may be that of a proxy. */
    public static function isBlind(): bool
    {
        return self::network() === null;
    }

    /** @return ?string the first bytes of the visitor's address; null when it belongs to a private network, such as a proxy's */
    private static function network(): ?string
    {
        $header = Settings::addressHeader();
        // The website's own proxy has added the last address; earlier ones may be forged.
        $listed = explode(',', (string) ($_SERVER[$header === '' ? 'REMOTE_ADDR' : $header] ?? ''));
        $address = (string) apply_filters('lead_intake_visitor_address', trim((string) end($listed)));
        if (filter_var($address, FILTER_VALIDATE_IP, FILTER_FLAG_NO_PRIV_RANGE | FILTER_FLAG_NO_RES_RANGE) === false) {
            return null;
        }
        $bytes = (string) inet_pton($address);
        $bytes = str_starts_with($bytes, self::IPV4_IN_IPV6) ? substr($bytes, strlen(self::IPV4_IN_IPV6)) : $bytes;
        return substr($bytes, 0, strlen($bytes) === 4 ? 3 : 7);
    }
}
