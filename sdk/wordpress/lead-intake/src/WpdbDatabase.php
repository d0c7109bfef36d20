<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\Outbox\Database;
use LeadIntake\Outbox\Dialect;

/** WordPress's own connection. Errors become exceptions and are neither printed nor logged, because they contain visitors' data. */
final class WpdbDatabase implements Database
{
    public function __construct(private readonly \wpdb $wpdb)
    {
    }

    public function dialect(): Dialect
    {
        return Dialect::MySQL;
    }

    public function execute(string $sql, #[\SensitiveParameter] array $parameters = []): int
    {
        return (int) $this->run($sql, $parameters);
    }

    public function query(string $sql, array $parameters = []): array
    {
        $this->run($sql, $parameters);
        return array_map(static fn (object $row): array => (array) $row, $this->wpdb->last_result);
    }

    public function isInTransaction(): bool
    {
        // MySQL reports nothing more precise.
        return $this->query('SELECT @@autocommit AS autocommit')[0]['autocommit'] !== '1';
    }

    /** Commits all writes of a function, or none. @throws \Exception when the database fails */
    public function atomically(\Closure $do): void
    {
        $retries = $this->wpdb->reconnect_retries;
        $this->execute('START TRANSACTION');
        // WordPress would continue on a new connection, without the writes of the lost one.
        $this->wpdb->reconnect_retries = 0;
        try {
            $do();
            $this->execute('COMMIT');
        } catch (\Throwable $error) {
            $this->execute('ROLLBACK');
            throw $error;
        } finally {
            $this->wpdb->reconnect_retries = $retries;
        }
    }

    private function run(string $sql, #[\SensitiveParameter] array $parameters): int|bool
    {
        $wereSuppressed = $this->wpdb->suppress_errors();
        try {
            $done = $this->wpdb->query($this->withValues($sql, $parameters));
        } finally {
            $this->wpdb->suppress_errors($wereSuppressed);
        }
        return $done !== false ? $done : throw new \RuntimeException("the database has failed: {$this->wpdb->last_error}");
    }

    private function withValues(string $sql, #[\SensitiveParameter] array $parameters): string
    {
        if ($parameters === []) {
            return $sql;
        }
        $parts = explode('?', str_replace('%', '%%', $sql));
        $statement = array_shift($parts);
        foreach ($parts as $index => $part) {
            $value = $parameters[$index];
            // WordPress has no placeholder for NULL.
            $statement .= ($value === null ? 'NULL' : (is_int($value) ? '%d' : '%s')) . $part;
        }
        $values = array_filter($parameters, static fn (mixed $value): bool => $value !== null);
        return $this->wpdb->prepare($statement, array_values($values));
    }
}
