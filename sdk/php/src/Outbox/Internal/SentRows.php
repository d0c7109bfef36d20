<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Internal\Repeated;
use LeadIntake\Lead;
use LeadIntake\Outbox\Database;

/**
 * The reads of a comparison.
 *
 * @internal
 */
final class SentRows
{
    /** The number of rows in memory at a time. */
    private const BATCH_SIZE = 500;

    private const SENT = "state IN ('delivered', 'already_open')";

    public function __construct(private readonly Database $database, private readonly string $table)
    {
    }

    /** Counts the rows to compare. */
    public function beginning(): Run
    {
        $columns = 'COUNT(lead_id) AS number, COUNT(*) AS total, MAX(lead_id) AS up_to, MIN(settled_at) AS since';
        [$row] = $this->database->query("SELECT $columns FROM $this->table WHERE " . self::SENT);
        ['number' => $number, 'total' => $total, 'up_to' => $upTo, 'since' => $since] = $row;
        return new Run((string) $upTo, (int) $number, $since === null || $since === '' ? null : (int) $since, $total - $number, Table::now());
    }

    /**
     * @param ?array{string, string} $after
     * @return list<array{key: string, leadId: string, state: string, createdAt: int, hasData: bool}> the next rows by descending
     *     id and key, up to an id, and behind a row if there is one
     */
    public function behind(string $upTo, ?array $after): array
    {
        [$where, $values] = $after === null
            ? ['', []]
            : [' AND (lead_id < ? OR (lead_id = ? AND idempotency_key < ?))', [$after[0], ...$after]];
        $rows = $this->database->query(
            'SELECT idempotency_key, lead_id, state, created_at, CASE WHEN capture IS NULL THEN 0 ELSE 1 END AS has_data'
            . " FROM $this->table WHERE " . self::SENT . " AND lead_id <= ?$where"
            . ' ORDER BY lead_id DESC, idempotency_key DESC LIMIT ' . self::BATCH_SIZE,
            [$upTo, ...$values],
        );
        return array_map(static fn (array $row): array => [
            'key' => (string) $row['idempotency_key'],
            'leadId' => (string) $row['lead_id'],
            'state' => $row['state'],
            'createdAt' => (int) $row['created_at'],
            'hasData' => (int) $row['has_data'] === 1,
        ], $rows);
    }

    /**
     * Whether a lead has other data than its row has kept. An already open lead comes from another creation.
     *
     * @param array{key: string, state: string} $row
     */
    public function haveOther(array $row, #[\SensitiveParameter] Lead $lead): bool
    {
        if ($row['state'] !== 'delivered') {
            return false;
        }
        $rows = $this->database->query("SELECT capture FROM $this->table WHERE idempotency_key = ?", [$row['key']]);
        $capture = CaptureJson::decode((string) ($rows[0]['capture'] ?? ''));
        return $capture !== null && Repeated::other(get_object_vars($lead), $capture) !== null;
    }

    /** Counts the leads that are not sent. */
    public function countUnsent(Run $run): void
    {
        $run->waiting = $run->refused = 0;
        $rows = $this->database->query(
            "SELECT state, COUNT(*) AS number FROM $this->table WHERE state IN ('waiting', 'refused') GROUP BY state",
        );
        foreach ($rows as $row) {
            $run->{$row['state']} = (int) $row['number'];
        }
    }
}
