<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\Outbox\Outbox;

/** The outbox in WordPress's own database, and the plugin's other tables, with the prefix of the website. */
final class Outboxes
{
    public static function own(): Outbox
    {
        return new Outbox(self::database(), self::table());
    }

    public static function database(): WpdbDatabase
    {
        global $wpdb;
        return new WpdbDatabase($wpdb);
    }

    /** @throws \Exception when the database fails */
    public static function setUp(): void
    {
        self::own()->setUp();
        $options = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';
        self::database()->execute('CREATE TABLE IF NOT EXISTS ' . Submissions::table() . ' (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,'
            . ' form VARCHAR(64) NOT NULL, fields MEDIUMTEXT NULL, fault VARCHAR(16) NOT NULL, idempotency_key CHAR(36) NULL,'
            . " created_at BIGINT NOT NULL, INDEX (form, id), INDEX (fault, id)) $options");
        self::database()->execute('CREATE TABLE IF NOT EXISTS ' . Throttle::table() . ' (bucket SMALLINT UNSIGNED NOT NULL PRIMARY KEY,'
            . " hour INTEGER UNSIGNED NOT NULL, number INTEGER UNSIGNED NOT NULL) $options");
    }

    /** Removes the tables, unless they contain a lead or a submission that needs attention. @throws \Exception when the database fails */
    public static function dropIfDelivered(): void
    {
        // Creates missing tables, so that the count below does not fail.
        self::setUp();
        [$leads, $submissions] = [self::table(), Submissions::table()];
        $count = "SELECT (SELECT COUNT(*) FROM $leads WHERE capture IS NOT NULL) + (SELECT COUNT(*) FROM $submissions s WHERE "
            . Submissions::NEEDS_SOMEBODY . ') AS number';
        if ((int) self::database()->query($count)[0]['number'] > 0) {
            return;
        }
        foreach (self::tables() as $table) {
            self::database()->execute("DROP TABLE IF EXISTS $table");
        }
    }

    /** @return list<string> all tables of the website */
    public static function tables(): array
    {
        return [self::table(), self::table() . '_memo', Submissions::table(), Throttle::table()];
    }

    /** Returns a name that begins with a letter or _, as the outbox requires: a prefix of WordPress may begin with a digit. */
    public static function table(string $name = Outbox::TABLE): string
    {
        global $wpdb;
        return preg_replace('/^(?=\d)/', '_', $wpdb->prefix . $name);
    }

    /** @return \Generator<string, array<string, mixed>> the decoded JSON in a column of a table, by the keys of the rows that have any */
    public static function stored(string $table, string $key, string $column): \Generator
    {
        $last = '0';
        do {
            $select = "SELECT $key AS id, $column AS json FROM $table WHERE $column IS NOT NULL AND $key > ? ORDER BY $key LIMIT 200";
            $rows = self::database()->query($select, [$last]);
            foreach ($rows as ['id' => $last, 'json' => $json]) {
                yield $last => (array) json_decode($json, true);
            }
        } while ($rows !== []);
    }

    /** @return array<string, string> the name, the contact and other texts of a lead, as far as it has them */
    public static function texts(#[\SensitiveParameter] array $capture): array
    {
        $contact = is_array($capture['contact'] ?? null) ? $capture['contact'] : [];
        $texts = ['name' => $capture['displayName'] ?? '', 'contact' => $contact['value'] ?? ''] + $capture;
        return array_filter(array_diff_key($texts, ['displayName' => 0, 'sourceId' => 0]), static fn (mixed $text): bool => is_string($text) && $text !== '');
    }
}
