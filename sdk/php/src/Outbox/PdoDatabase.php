<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** A PDO connection with any attributes; failures always throw, whatever its error mode. */
final class PdoDatabase implements Database
{
    private readonly Dialect $dialect;

    /** @throws \InvalidArgumentException when PDO's driver is not sqlite, mysql or pgsql */
    public function __construct(private readonly \PDO $pdo)
    {
        $driver = $pdo->getAttribute(\PDO::ATTR_DRIVER_NAME);
        $this->dialect = match ($driver) {
            'sqlite' => Dialect::SQLite,
            'mysql' => Dialect::MySQL,
            'pgsql' => Dialect::PostgreSQL,
            default => throw new \InvalidArgumentException("an outbox needs PDO's sqlite, mysql or pgsql, not $driver"),
        };
    }

    public function dialect(): Dialect
    {
        return $this->dialect;
    }

    public function execute(string $sql, #[\SensitiveParameter] array $parameters = []): int
    {
        return $this->run($sql, $parameters, static fn (\PDOStatement $done): int => $done->rowCount());
    }

    public function query(string $sql, array $parameters = []): array
    {
        return $this->run($sql, $parameters, static fn (\PDOStatement $done): array => array_map(
            // PDO::ATTR_CASE may return column names in upper case.
            array_change_key_case(...),
            $done->fetchAll(\PDO::FETCH_ASSOC),
        ));
    }

    public function isInTransaction(): bool
    {
        return match ($this->dialect) {
            Dialect::SQLite => !$this->canBegin(),
            // PDO does not notice SET autocommit.
            Dialect::MySQL => $this->pdo->inTransaction() || !$this->query('SELECT @@autocommit AS automatic')[0]['automatic'],
            Dialect::PostgreSQL => $this->pdo->inTransaction(),
        };
    }

    /** Whether BEGIN works, because PDO does not notice a transaction that this statement has opened. */
    private function canBegin(): bool
    {
        try {
            $this->execute('BEGIN');
        } catch (\PDOException $error) {
            return str_contains($error->getMessage(), 'within a transaction') ? false : throw $error;
        }
        $this->execute('ROLLBACK');
        return true;
    }

    private function run(string $sql, #[\SensitiveParameter] array $parameters, \Closure $read): mixed
    {
        $errorMode = $this->pdo->getAttribute(\PDO::ATTR_ERRMODE);
        $this->pdo->setAttribute(\PDO::ATTR_ERRMODE, \PDO::ERRMODE_EXCEPTION);
        try {
            $statement = $this->pdo->prepare($sql);
            foreach ($parameters as $index => $value) {
                // A number bound as a string is invalid in LIMIT and compares as a string.
                $type = is_int($value) ? \PDO::PARAM_INT : \PDO::PARAM_STR;
                $statement->bindValue($index + 1, $value, $value === null ? \PDO::PARAM_NULL : $type);
            }
            $statement->execute();
            return $read($statement);
        } finally {
            $this->pdo->setAttribute(\PDO::ATTR_ERRMODE, $errorMode);
        }
    }
}
