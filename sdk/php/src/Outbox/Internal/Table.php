<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Outbox\Attention;
use LeadIntake\Outbox\Database;
use LeadIntake\Outbox\Dialect;
use LeadIntake\Outbox\Entry;
use LeadIntake\Outbox\State;

/**
 * All that is asked of the table, each by one statement. Times are milliseconds since 1970, UTC, of this machine's clock.
 *
 * @internal
 */
final class Table
{
    /** How long an entry that was taken up is nobody else's. Whoever is killed meanwhile leaves it to be sent again then. */
    private const LEASE_MS = 5 * 60_000;

    /** No wait is as long. Who waits longer was told so by a clock that was ahead, and has been set right. */
    private const LONGER_THAN_ANY_WAIT_MS = 25 * 3_600_000;

    private const DAY_MS = 86_400_000;

    /** The years 271,821 before Christ and 275,760 after. */
    private const FARTHEST_MS = 8_640_000_000_000_000;

    /** How many settled entries are deleted at once. */
    private const MAX_FORGOTTEN = 500;

    /** What was added more than a day from now had a clock that was ahead: it would else not be told for long. */
    private const NEEDS_ATTENTION = "state = 'refused' OR (state = 'waiting' AND (created_at < ? OR created_at > ?"
        . " OR reason LIKE '401 %' OR reason LIKE '402 %' OR reason LIKE '403 %'))";

    public function __construct(private readonly Database $database, private readonly string $name)
    {
    }

    public static function now(): int
    {
        return (int) (microtime(true) * 1000);
    }

    public function isInTransaction(): bool
    {
        return $this->database->isInTransaction();
    }

    public function create(): void
    {
        foreach (Schema::of($this->database->dialect(), $this->name) as $statement) {
            try {
                $this->database->execute($statement);
            } catch (\Exception) {
                // PostgreSQL refuses whoever makes the same at the same time; then it is there.
                $this->database->execute($statement);
            }
        }
    }

    /** Writes an entry unless there is one with its key. */
    public function insert(string $key, #[\SensitiveParameter] string $capture): void
    {
        $now = self::now();
        // Neither ends a transaction of PostgreSQL, and neither passes over another fault, as INSERT IGNORE does.
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
     * The data stored under a key, as it is known to the statement before.
     *
     * @return ?string null: erased
     *
     * @throws \RuntimeException when there is no such key
     */
    public function captureOf(string $key): ?string
    {
        // A transaction of MySQL would otherwise not see what another has written since it began.
        $lock = $this->database->dialect() === Dialect::MySQL ? ' LOCK IN SHARE MODE' : '';
        $rows = $this->rows("SELECT idempotency_key, capture FROM $this->name WHERE idempotency_key = ?$lock", [$key]);
        return $rows === []
            ? throw new \RuntimeException("the database has not kept the lead with the idempotency key $key")
            : self::text($rows[0]['capture']);
    }

    /** @return ?string why nothing is to be sent now: the service has asked to wait, and not for the sake of one lead */
    public function pause(): ?string
    {
        $now = self::now();
        $rows = $this->rows(
            "SELECT idempotency_key, reason FROM $this->name WHERE state = 'waiting' AND reason LIKE '429 %'"
            . ' AND next_attempt_at > ? AND next_attempt_at <= ? LIMIT 1',
            [$now, $now + self::LONGER_THAN_ANY_WAIT_MS],
        );
        return $rows[0]['reason'] ?? null;
    }

    /**
     * @return list<array<string, int|string|null>> rows that are to be sent now: those tried least, so that what never gets an
     *     answer holds up nothing else; of these the oldest first
     */
    public function due(int $limit): array
    {
        $now = self::now();
        return $this->rows(
            "SELECT * FROM $this->name WHERE state = 'waiting' AND (next_attempt_at <= ? OR next_attempt_at > ?)"
            . " ORDER BY attempts, created_at, idempotency_key LIMIT $limit",
            [$now, $now + self::LONGER_THAN_ANY_WAIT_MS],
        );
    }

    /**
     * Takes up a row to send it.
     *
     * @param array<string, int|string|null> $row
     * @return ?Entry as it is now, its next attempt being the end of the lease; null when somebody else has taken it up, or it
     *     is no longer as it was read
     */
    public function takeUp(array $row): ?Entry
    {
        $lease = self::now() + self::LEASE_MS;
        $isTaken = $this->database->execute(
            "UPDATE $this->name SET attempts = attempts + 1, next_attempt_at = ?"
            . " WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?",
            [$lease, $row['idempotency_key'], (int) $row['next_attempt_at']],
        ) === 1;
        return $isTaken ? self::entry(['attempts' => $row['attempts'] + 1, 'next_attempt_at' => $lease] + $row) : null;
    }

    /** Erases the data of what the service has. @return bool whether it was still as it was taken up */
    public function settle(Entry $takenUp, State $state, ?string $leadId): bool
    {
        return $this->note(
            'state = ?, lead_id = ?, capture = NULL, reason = NULL, settled_at = ?',
            [$state->value, $leadId, self::now()],
            $takenUp,
        );
    }

    /** @return bool whether it was still as it was taken up */
    public function refuse(Entry $takenUp, string $reason): bool
    {
        return $this->note("state = 'refused', reason = ?", [$reason], $takenUp);
    }

    /** @return bool whether it was still as it was taken up */
    public function postpone(Entry $takenUp, int $waitMs, string $reason): bool
    {
        return $this->note('next_attempt_at = ?, reason = ?', [self::now() + $waitMs, $reason], $takenUp);
    }

    /** @return bool whether it waited or was refused */
    public function putBack(string $key, #[\SensitiveParameter] ?string $capture): bool
    {
        $set = "state = 'waiting', attempts = 0, next_attempt_at = ?, reason = NULL";
        $values = [self::now()];
        if ($capture !== null) {
            $set .= ', capture = ?';
            $values[] = $capture;
        }
        return $this->change($set, $values, $key);
    }

    /** @return bool whether it waited or was refused */
    public function discard(string $key): bool
    {
        $set = "state = 'discarded', capture = NULL, reason = NULL, settled_at = ?";
        return $this->change($set, [self::now()], $key);
    }

    public function has(string $key, State $state): bool
    {
        $found = "SELECT 1 FROM $this->name WHERE idempotency_key IN (?, ?) AND state = ?";
        return $this->database->query($found, [...self::asStored($key), $state->value]) !== [];
    }

    public function needingAttention(int $limit): Attention
    {
        $aDayOff = [self::now() - self::DAY_MS, self::now() + self::DAY_MS];
        $where = "FROM $this->name WHERE " . self::NEEDS_ATTENTION;
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

    /** Deletes entries that were settled long ago, and whose data are erased. */
    public function forgetSettled(int $keepDays): void
    {
        $rows = $this->rows(
            "SELECT idempotency_key FROM $this->name WHERE state IN ('delivered', 'already_open', 'discarded')"
            . ' AND settled_at < ? LIMIT ' . self::MAX_FORGOTTEN,
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
    public static function entry(array $row): Entry
    {
        $capture = self::text($row['capture']);
        return new Entry(
            $row['idempotency_key'],
            $capture === null ? null : CaptureJson::decode($capture),
            State::from($row['state']),
            (int) $row['attempts'],
            self::time($row['created_at']),
            self::time($row['next_attempt_at']),
            self::text($row['settled_at']) === null ? null : self::time($row['settled_at']),
            self::text($row['lead_id']),
            self::text($row['reason']),
        );
    }

    /**
     * Notes what came of an entry, unless it was changed meanwhile: mended, given up, or taken up by another.
     *
     * @param list<int|string|null> $values
     */
    private function note(string $set, array $values, Entry $takenUp): bool
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
            "UPDATE $this->name SET $set WHERE idempotency_key IN (?, ?) AND state IN ('waiting', 'refused')",
            [...$values, ...self::asStored($key)],
        ) > 0;
    }

    /**
     * Whatever has come into the table can be got out of it; what the outbox has stored is in lower case.
     *
     * @return array{string, string}
     */
    private static function asStored(string $key): array
    {
        return [$key, strtolower($key)];
    }

    /**
     * @param list<int|string|null> $parameters
     * @return list<array<string, int|string|null>> rows that have their key
     *
     * @throws \UnexpectedValueException when the connection is set to give rows in another shape
     */
    private function rows(string $sql, array $parameters = []): array
    {
        $rows = $this->database->query($sql, $parameters);
        foreach ($rows as $row) {
            if (!is_string($row['idempotency_key'] ?? null)) {
                throw new \UnexpectedValueException('the database connection gives rows without a text named idempotency_key');
            }
        }
        return $rows;
    }

    /** PDO can be set to give '' for NULL. */
    private static function text(int|float|string|null $value): ?string
    {
        return $value === null || $value === '' ? null : (string) $value;
    }

    /** A time, or the nearest that there is: SQLite takes any number. */
    private static function time(int|float|string $ms): \DateTimeImmutable
    {
        $ms = (int) max(-self::FARTHEST_MS, min(self::FARTHEST_MS, (float) $ms));
        $seconds = (int) floor($ms / 1000);
        return (new \DateTimeImmutable("@$seconds"))->modify('+' . $ms - $seconds * 1000 . ' msec');
    }
}
