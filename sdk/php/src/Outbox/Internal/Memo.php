<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Outbox\Database;
use LeadIntake\Outbox\Dialect;

/**
 * One entry of an outbox's memo, such as the position of a comparison.
 *
 * @internal
 */
final class Memo
{
    private readonly string $table;
    private readonly string $name;

    /** Creates the memo's table if an earlier release has set up the outbox. */
    public function __construct(private readonly Database $database, string $table, string $name)
    {
        $this->table = Schema::memoTable($table);
        // Two tables with long names can share one memo.
        $this->name = $name . substr($table, Schema::MEMO_NAME_LENGTH);
        try {
            $rows = $this->select();
        } catch (\Exception) {
            Schema::create($database, [Schema::memo($database->dialect(), $table)]);
            $rows = $this->select();
        }
        if ($rows === []) {
            $unlessThere = $database->dialect() === Dialect::MySQL
                ? 'ON DUPLICATE KEY UPDATE name = name'
                : 'ON CONFLICT (name) DO NOTHING';
            $database->execute("INSERT INTO $this->table (name, value, token) VALUES (?, '', '') $unlessThere", [$this->name]);
        }
    }

    /** @return array{string, string} the text and the token; empty before the first write */
    public function read(): array
    {
        $row = $this->select()[0] ?? [];
        return [(string) ($row['value'] ?? ''), (string) ($row['token'] ?? '')];
    }

    /** Takes the entry over: callers with an earlier token can no longer write it. */
    public function take(string $token): void
    {
        $this->database->execute("UPDATE $this->table SET token = ? WHERE name = ?", [$token, $this->name]);
    }

    /** Changes the text and the token, if the token is still the expected one; returns whether it was. */
    public function write(string $value, string $token, string $expected): bool
    {
        $set = "UPDATE $this->table SET value = ?, token = ? WHERE name = ? AND token = ?";
        if ($this->database->execute($set, [$value, $token, $this->name, $expected]) === 1) {
            return true;
        }
        // MySQL does not count a row that has these values already.
        return $this->read() === [$value, $token] && $token === $expected;
    }

    /** @return list<array<string, int|string|null>> */
    private function select(): array
    {
        return $this->database->query("SELECT value, token FROM $this->table WHERE name = ?", [$this->name]);
    }
}
