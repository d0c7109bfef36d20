<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

defined('ABSPATH') || exit;

use LeadIntake\Outbox\Outbox;

/** The outbox in WordPress's own database, under the prefix of the website. */
final class Outboxes
{
    public static function own(): Outbox
    {
        global $wpdb;
        return new Outbox(new WpdbDatabase($wpdb), self::table());
    }

    /** @throws \Exception when the database fails */
    public static function setUp(): void
    {
        self::own()->setUp();
    }

    /** Removes the tables, unless the outbox contains what somebody still has to read or to send. */
    public static function dropIfDelivered(): void
    {
        global $wpdb;
        if ($wpdb->get_var('SELECT COUNT(*) FROM ' . self::table() . ' WHERE capture IS NOT NULL') === '0') {
            foreach (self::tables() as $table) {
                $wpdb->query("DROP TABLE IF EXISTS $table");
            }
        }
    }

    /** @return list<string> all tables of the website */
    public static function tables(): array
    {
        return [self::table()];
    }

    /** A name that begins with a letter or _, as the outbox requires; a prefix of WordPress may begin with a digit. */
    public static function table(string $name = Outbox::TABLE): string
    {
        global $wpdb;
        return preg_replace('/^(?=\d)/', '_', $wpdb->prefix . $name);
    }
}
