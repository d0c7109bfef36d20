<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

use LeadIntake\Outbox\Outbox;
use LeadIntake\Outbox\State;

/** The outbox in WordPress's own database, under its prefix. */
final class Outboxes
{
    public static function own(): Outbox
    {
        global $wpdb;
        return new Outbox(new WpdbDatabase($wpdb), self::table());
    }

    /** Removes the table, unless it contains undelivered leads. */
    public static function dropIfDelivered(): void
    {
        global $wpdb;
        $undelivered = sprintf(
            "SELECT COUNT(*) FROM %s WHERE state IN ('%s', '%s')",
            self::table(),
            State::Waiting->value,
            State::Refused->value,
        );
        if ($wpdb->get_var($undelivered) === '0') {
            $wpdb->query('DROP TABLE ' . self::table());
        }
    }

    private static function table(): string
    {
        global $wpdb;
        return $wpdb->prefix . Outbox::TABLE;
    }
}
