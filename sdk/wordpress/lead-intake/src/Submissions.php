<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/**
 * Submissions to the forms of other plugins, stored as they came, so that a mapping can be corrected. Their fields are erased a week after
 * their lead was delivered, or when an administrator erases them.
 */
final class Submissions
{
    /** No contact that the service accepts was found. */
    public const NO_CONTACT = 'contact';
    /** The note was too long for a lead, and was cut. */
    public const CUT = 'cut';
    /** Too many came from one network within an hour. */
    public const HELD = 'held';
    /** The visitor has not agreed: nothing was stored. */
    public const NO_CONSENT = 'consent';

    /** The maximum number of held submissions. Visitors are told that further ones are not stored. */
    private const MOST_HELD = 500;
    private const KEPT_DAYS = 7;
    private const LISTED_DAYS = 30;
    public const NEEDS_SOMEBODY = "s.fields IS NOT NULL AND (s.fault <> '' OR s.idempotency_key IS NULL)";

    public static function table(): string
    {
        return Outboxes::table('lead_intake_submissions');
    }

    /** @param ?array<string, string> $fields null: none of them may be stored @throws \RuntimeException when it was not stored */
    public static function add(string $form, #[\SensitiveParameter] ?array $fields, string $fault): int
    {
        $held = 'SELECT COUNT(*) AS number FROM ' . self::table() . ' WHERE fault = ? AND fields IS NOT NULL';
        if ($fault === self::HELD && (int) Outboxes::database()->query($held, [$fault])[0]['number'] >= self::MOST_HELD) {
            throw new \RuntimeException(self::MOST_HELD . ' submissions are held already');
        }
        $json = $fields === null ? null : json_encode($fields, JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR | JSON_FORCE_OBJECT);
        $insert = 'INSERT INTO ' . self::table() . ' (form, fields, fault, created_at) VALUES (?, ?, ?, ?)';
        Outboxes::database()->execute($insert, [$form, $json, $fault, time()]);
        return (int) Outboxes::database()->query('SELECT LAST_INSERT_ID() AS id')[0]['id'];
    }

    /** Stores the result of a submission: its fault, and the key of its lead in the outbox. */
    public static function settle(int $id, string $fault, ?string $key): void
    {
        $set = 'UPDATE ' . self::table() . ' SET fault = ?, idempotency_key = ? WHERE id = ?';
        Outboxes::database()->execute($set, [$fault, $key, $id]);
    }

    /** Erases the fields of a submission, which stays in the list. */
    public static function erase(int $id): void
    {
        Outboxes::database()->execute('UPDATE ' . self::table() . ' SET fields = NULL WHERE id = ?', [$id]);
    }

    /** Erases the fields of all held submissions of a form. */
    public static function eraseHeld(string $form): void
    {
        Outboxes::database()->execute('UPDATE ' . self::table() . ' SET fields = NULL WHERE form = ? AND fault = ?', [$form, self::HELD]);
    }

    /** @return ?array<string, mixed> as an element of newest() */
    public static function get(int $id, string $lock = ''): ?array
    {
        return self::rows('s.id = ?', [$id], 1, $lock)[0] ?? null;
    }

    /** @return list<array<string, mixed>> the submissions with fields that share a lead, as a double click does; in the form of newest() */
    public static function sharing(string $form, string $key): array
    {
        return self::rows('s.form = ? AND s.idempotency_key = ? AND s.fields IS NOT NULL', [$form, $key], PHP_INT_MAX);
    }

    /**
     * Returns the submissions of a form, each with the state of its lead: those that need attention first, then the newest.
     *
     * @return list<array{id: string, form: string, fields: ?array<string, string>, fault: string, key: ?string, createdAt: string,
     *     state: ?string, reason: ?string, leadId: ?string, attempts: ?string, nextAttemptAt: ?string}> numbers as text
     */
    public static function newest(string $form, int $limit = 10): array
    {
        return self::rows('s.form = ?', [$form], $limit);
    }

    /** @return list<array<string, mixed>> the submissions with fields whose lead was not delivered; in the form of newest() */
    public static function undelivered(string $form, int $limit = 500): array
    {
        $where = "s.form = ? AND s.fields IS NOT NULL AND s.fault <> ? AND (s.idempotency_key IS NULL OR o.state IN ('waiting', 'refused'))";
        return self::rows($where, [$form, self::HELD], $limit);
    }

    /** @return array{count: int, forms: list<string>} how many submissions need attention, and their forms */
    public static function needingSomebody(): array
    {
        $select = 'SELECT s.form, COUNT(*) AS number FROM ' . self::table() . ' s WHERE ';
        $rows = Outboxes::database()->query($select . self::NEEDS_SOMEBODY . ' GROUP BY s.form');
        return ['count' => array_sum(array_column($rows, 'number')), 'forms' => array_column($rows, 'form')];
    }

    /** Erases fields that are no longer needed, and removes submissions that are no longer listed. */
    public static function tidy(): void
    {
        [$table, $outbox] = [self::table(), Outboxes::table()];
        Outboxes::database()->execute(
            "UPDATE $table s LEFT JOIN $outbox o ON o.idempotency_key = s.idempotency_key SET s.fields = NULL WHERE s.fields IS NOT NULL"
            . " AND s.fault = '' AND GREATEST(s.created_at, COALESCE(o.settled_at DIV 1000, 0)) < ? AND s.idempotency_key IS NOT NULL"
            . " AND o.capture IS NULL AND (o.state IS NULL OR o.state NOT IN ('waiting', 'refused'))",
            [time() - self::KEPT_DAYS * DAY_IN_SECONDS],
        );
        $old = time() - self::LISTED_DAYS * DAY_IN_SECONDS;
        Outboxes::database()->execute("DELETE FROM $table WHERE fields IS NULL AND created_at < ?", [$old]);
    }

    /** @param string $lock such as `FOR UPDATE`, which keeps others from changing them and their leads @return list<array<string, mixed>> */
    private static function rows(string $where, array $values, int $limit, string $lock = ''): array
    {
        $select = 'SELECT s.id, s.form, s.fields, s.fault, s.idempotency_key AS `key`, s.created_at AS createdAt, o.state, o.reason,'
            . ' o.attempts, o.next_attempt_at AS nextAttemptAt, o.lead_id AS leadId FROM ' . self::table() . ' s'
            . ' LEFT JOIN ' . Outboxes::table() . ' o ON o.idempotency_key = s.idempotency_key';
        $order = '(' . self::NEEDS_SOMEBODY . ') DESC, s.id DESC';
        $rows = Outboxes::database()->query("$select WHERE $where ORDER BY $order LIMIT $limit $lock", $values);
        return array_map(static fn (#[\SensitiveParameter] array $row): array => ['fields' => self::fields($row['fields'])] + $row, $rows);
    }

    /** @return ?array<string, string> */
    private static function fields(#[\SensitiveParameter] ?string $json): ?array
    {
        $fields = $json === null ? null : json_decode($json, true);
        return is_array($fields) ? array_map(strval(...), array_filter($fields, is_scalar(...))) : null;
    }
}
