<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

use LeadIntake\Outbox\Outbox;

/** The outbox in WordPress's own database, under its prefix. */
final class Outboxes
{
    public static function own(): Outbox
    {
        global $wpdb;
        return new Outbox(new WpdbDatabase($wpdb), self::table());
    }

    /** Removes the table, unless it contains what somebody still has to read or to send. */
    public static function dropIfDelivered(): void
    {
        global $wpdb;
        $table = self::table();
        if ($wpdb->get_var("SELECT COUNT(*) FROM $table WHERE capture IS NOT NULL") === '0') {
            $wpdb->query("DROP TABLE $table");
        }
    }

    /** A name that begins with a letter or _, as the outbox requires; a prefix of WordPress may begin with a digit. */
    private static function table(): string
    {
        global $wpdb;
        return preg_replace('/^(?=\d)/', '_', $wpdb->prefix . Outbox::TABLE);
    }
}
