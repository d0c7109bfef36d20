<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Internal\Outcomes;
use LeadIntake\Outbox\Attention;
use LeadIntake\Outbox\Database;
use LeadIntake\Outbox\Dialect;
use LeadIntake\Outbox\Entry;
use LeadIntake\Outbox\State;

/**
 * The reads and writes of the table; each write is one statement. Times are milliseconds since 1970 of the local clock.
 *
 * @internal
 */
final class Table
{
    /** The lease on an entry in flight. When its worker is killed, the entry is sent again only after this time. */
    private const LEASE_MS = 5 * 60_000;

    /** An entry whose next attempt is further away was written while a clock was ahead: it counts as due. */
    private const CLOCK_WAS_AHEAD_MS = 25 * 3_600_000;

    private const DAY_MS = 86_400_000;

    /** The beginning of year 1 and the end of year 9999, which all languages can represent. */
    private const EARLIEST_MS = -62_135_596_800_000;
    private const LATEST_MS = 253_402_300_799_999;

    /** The maximum number of settled entries that a pass deletes. */
    private const MAX_DELETED_ROWS = 500;

    public function __construct(private readonly Database $database, private readonly string $name)
    {
    }

    public static function now(): int
    {
        return (int) (microtime(true) * 1000);
    }

    /** Inserts an entry unless its key exists. */
    public function insert(string $key, #[\SensitiveParameter] string $capture): void
    {
        $now = self::now();
        // A unique violation would abort the transaction on PostgreSQL. INSERT IGNORE would hide other errors.
        $unlessThere = $this->database->dialect() === Dialect::MySQL
            ? 'ON DUPLICATE KEY UPDATE idempotency_key = idempotency_key'
            : 'ON CONFLICT (idempotency_key) DO NOTHING';
        $this->database->execute(
            "INSERT INTO $this->name (idempotency_key, capture, state, attempts, created_at, next_attempt_at)"
            . " VALUES (?, ?, 'waiting', 0, ?, ?) $unlessThere",
            [$key, $capture, $now, $now],
        );
    }

    /**
     * Returns the data stored under a key, as the preceding insert saw it.
     *
     * @return ?string null: erased
     *
     * @throws \RuntimeException when there is no such key
     */
    public function captureOf(string $key): ?string
    {
        // On MySQL, only a locking read sees rows that were committed since this transaction began.
        $lock = $this->database->dialect() === Dialect::MySQL ? ' LOCK IN SHARE MODE' : '';
        $rows = $this->rows("SELECT idempotency_key, capture FROM $this->name WHERE idempotency_key = ?$lock", [$key]);
        return $rows === []
            ? throw new \RuntimeException("the database has not stored the lead with the idempotency key $key")
            : self::text($rows[0]['capture']);
    }

    /** @return ?string the reason of a requested pause that has not ended; until then, nothing is sent. Null: there is none */
    public function pause(): ?string
    {
        $now = self::now();
        $rows = $this->rows(
            "SELECT idempotency_key, reason FROM $this->name WHERE state = 'waiting' AND "
            . Reason::like(Outcomes::PAUSE_REASONS) . ' AND next_attempt_at > ? AND next_attempt_at <= ? LIMIT 1',
            [$now, $now + self::CLOCK_WAS_AHEAD_MS],
        );
        return $rows[0]['reason'] ?? null;
    }

    /**
     * @return list<array<string, int|string|null>> the due rows, fewest attempts first, then those due for longest. Thus leads
     *     that never get a response, or whose attempts do not count, cannot block others
     */
    public function due(int $limit): array
    {
        $now = self::now();
        return $this->rows(
            "SELECT * FROM $this->name WHERE state = 'waiting' AND (next_attempt_at <= ? OR next_attempt_at > ?)"
            . " ORDER BY attempts, next_attempt_at, created_at, idempotency_key LIMIT $limit",
            [$now, $now + self::CLOCK_WAS_AHEAD_MS],
        );
    }

    /**
     * Leases a row to send it.
     *
     * @param array<string, int|string|null> $row
     * @return ?Entry the current entry, with the end of the lease as its next attempt; null when another worker leased it or
     *     it was changed
     */
    public function takeUp(#[\SensitiveParameter] array $row): ?Entry
    {
        $leaseEnd = self::now() + self::LEASE_MS;
        // Clears the previous reason, which would make the end of the lease a pause.
        $isTaken = $this->database->execute(
            "UPDATE $this->name SET attempts = attempts + 1, next_attempt_at = ?, reason = NULL"
            . " WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?",
            [$leaseEnd, $row['idempotency_key'], (int) $row['next_attempt_at']],
        ) === 1;
        $changed = ['attempts' => $row['attempts'] + 1, 'next_attempt_at' => $leaseEnd, 'reason' => null];
        return $isTaken ? self::entry($changed + $row) : null;
    }

    /**
     * Erases the data of a sent entry, unless there is a reason to keep it.
     *
     * @return bool whether the lease was still held
     */
    public function settle(#[\SensitiveParameter] Entry $takenUp, State $state, ?string $leadId, ?string $reason): bool
    {
        return $reason === null
            ? $this->note(
                'state = ?, lead_id = ?, capture = NULL, reason = NULL, settled_at = ?',
                [$state->value, $leadId, self::now()],
                $takenUp,
            )
            : $this->note('state = ?, lead_id = ?, reason = ?', [$state->value, $leadId, $reason], $takenUp);
    }

    /** @return bool whether the lease was still held */
    public function refuse(#[\SensitiveParameter] Entry $takenUp, string $reason): bool
    {
        return $this->note("state = 'refused', reason = ?", [$reason], $takenUp);
    }

    /** @return bool whether the lease was still held */
    public function postpone(#[\SensitiveParameter] Entry $takenUp, int $attempts, int $waitMs, string $reason): bool
    {
        $set = 'attempts = ?, next_attempt_at = ?, reason = ?';
        return $this->note($set, [$attempts, self::now() + $waitMs, $reason], $takenUp);
    }

    /** Makes the entries due that wait because of the configuration. */
    public function release(): void
    {
        $now = self::now();
        $this->database->execute(
            "UPDATE $this->name SET next_attempt_at = ? WHERE state = 'waiting' AND next_attempt_at > ?"
            . ' AND ' . Reason::like(Outcomes::CONFIGURATION_REASONS),
            [$now, $now],
        );
    }

    /** @return bool whether an entry with data has the key */
    public function retry(string $key, #[\SensitiveParameter] ?string $capture): bool
    {
        $set = 'attempts = ' . Outcomes::SQL_RETRIED_ATTEMPTS . ", state = 'waiting', next_attempt_at = ?, reason = NULL";
        $values = [self::now()];
        if ($capture !== null) {
            $set .= ', capture = ?';
            $values[] = $capture;
        }
        return $this->change($set, $values, $key);
    }

    /** @return ?Entry the delivered or already open entry with the key */
    public function sent(string $key): ?Entry
    {
        $rows = $this->rows(
            "SELECT * FROM $this->name WHERE idempotency_key IN (?, ?) AND state IN ('delivered', 'already_open')",
            self::possibleKeys($key),
        );
        return $rows === [] ? null : self::entry($rows[0]);
    }

    /** @return bool whether the entry was still sent */
    public function sendAgain(string $key, #[\SensitiveParameter] string $capture): bool
    {
        return $this->database->execute(
            // Counts as a second attempt, because the service may have the lead after all.
            "UPDATE $this->name SET state = 'waiting', attempts = 1, next_attempt_at = ?, settled_at = NULL, reason = NULL,"
            . " capture = ? WHERE idempotency_key = ? AND state IN ('delivered', 'already_open')",
            [self::now(), $capture, $key],
        ) === 1;
    }

    /** @return bool whether an entry with data has the key */
    public function discard(string $key): bool
    {
        $set = "state = 'discarded', capture = NULL, reason = NULL, settled_at = ?";
        return $this->change($set, [self::now()], $key);
    }

    /** @return ?State null: there is no entry with the key */
    public function stateOf(string $key): ?State
    {
        $found = "SELECT state FROM $this->name WHERE idempotency_key IN (?, ?)";
        $row = $this->database->query($found, self::possibleKeys($key))[0] ?? null;
        return $row === null ? null : State::tryFrom($row['state']) ?? State::Refused;
    }

    public function needingAttention(int $limit): Attention
    {
        $aDayOff = [self::now() - self::DAY_MS, self::now() + self::DAY_MS];
        $where = "FROM $this->name WHERE " . self::needsAttention();
        $count = $this->database->query("SELECT COUNT(*) AS number $where", $aDayOff);
        $rows = $this->rows("SELECT * $where ORDER BY created_at, idempotency_key LIMIT $limit", $aDayOff);
        return new Attention((int) $count[0]['number'], array_map(self::entry(...), $rows));
    }

    /** @return list<Entry> newest first */
    public function newest(int $limit): array
    {
        $rows = $this->rows("SELECT * FROM $this->name ORDER BY created_at DESC, idempotency_key DESC LIMIT $limit");
        return array_map(self::entry(...), $rows);
    }

    public function countWaiting(): int
    {
        return (int) $this->database->query("SELECT COUNT(*) AS number FROM $this->name WHERE state = 'waiting'")[0]['number'];
    }

    /** Deletes entries that were settled more than $keepDays ago. */
    public function deleteSettled(int $keepDays): void
    {
        $rows = $this->rows(
            "SELECT idempotency_key FROM $this->name WHERE state IN ('delivered', 'already_open', 'discarded')"
            . ' AND settled_at < ? LIMIT ' . self::MAX_DELETED_ROWS,
            [self::now() - $keepDays * self::DAY_MS],
        );
        if ($rows !== []) {
            $places = implode(', ', array_fill(0, count($rows), '?'));
            $this->database->execute(
                "DELETE FROM $this->name WHERE idempotency_key IN ($places)",
                array_column($rows, 'idempotency_key'),
            );
        }
    }

    /** @param array<string, int|string|null> $row */
    public static function entry(#[\SensitiveParameter] array $row): Entry
    {
        $capture = self::text($row['capture']);
        return new Entry(
            $row['idempotency_key'],
            $capture === null ? null : CaptureJson::decode($capture),
            // A row in an unknown state counts as refused.
            State::tryFrom($row['state']) ?? State::Refused,
            (int) $row['attempts'],
            self::time($row['created_at']),
            self::time($row['next_attempt_at']),
            self::text($row['settled_at']) === null ? null : self::time($row['settled_at']),
            self::text($row['lead_id']),
            self::text($row['reason']),
            $capture,
        );
    }

    /**
     * Stores the outcome of an entry, unless it was retried, discarded or leased in the meantime.
     *
     * @param list<int|string|null> $values
     */
    private function note(string $set, array $values, #[\SensitiveParameter] Entry $takenUp): bool
    {
        return $this->database->execute(
            "UPDATE $this->name SET $set WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?",
            [...$values, $takenUp->idempotencyKey, (int) $takenUp->nextAttemptAt->format('Uv')],
        ) === 1;
    }

    /** @param list<int|string|null> $values */
    private function change(string $set, #[\SensitiveParameter] array $values, string $key): bool
    {
        return $this->database->execute(
            "UPDATE $this->name SET $set WHERE idempotency_key IN (?, ?) AND " . Outcomes::SQL_WITH_DATA,
            [...$values, ...self::possibleKeys($key)],
        ) > 0;
    }

    /**
     * The outbox stores keys in lower case; keys inserted by other programs are matched as they are.
     *
     * @return array{string, string}
     */
    private static function possibleKeys(string $key): array
    {
        return [$key, strtolower($key)];
    }

    /**
     * @param list<int|string|null> $parameters
     * @return list<array<string, int|string|null>> rows with their key
     *
     * @throws \UnexpectedValueException when the connection is configured to return rows in another form
     */
    private function rows(string $sql, array $parameters = []): array
    {
        $rows = $this->database->query($sql, $parameters);
        foreach ($rows as $row) {
            if (!is_string($row['idempotency_key'] ?? null)) {
                throw new \UnexpectedValueException('the database connection returns rows without a string idempotency_key');
            }
        }
        return $rows;
    }

    /** Returns null for '', into which PDO::ATTR_ORACLE_NULLS may turn NULL. */
    private static function text(int|float|string|null $value): ?string
    {
        return $value === null || $value === '' ? null : (string) $value;
    }

    /** Converts a stored time to the nearest valid one: SQLite stores any number. */
    public static function time(int|float|string $ms): \DateTimeImmutable
    {
        $ms = (int) max(self::EARLIEST_MS, min(self::LATEST_MS, (float) $ms));
        $seconds = (int) floor($ms / 1000);
        return (new \DateTimeImmutable("@$seconds"))->modify('+' . $ms - $seconds * 1000 . ' msec');
    }

    /** Includes entries added by a clock more than a day ahead: otherwise they would be reported too late. */
    private static function needsAttention(): string
    {
        return Outcomes::SQL_WITH_DATA
            . " AND (state <> 'waiting' OR created_at < ? OR created_at > ? OR "
            . Reason::like(Outcomes::CONFIGURATION_REASONS) . ')';
    }
}
