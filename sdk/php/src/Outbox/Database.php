<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/**
 * A connection to the website's database, as far as an outbox needs one. PdoDatabase is one by PDO; a website that has
 * something else writes its own. Statements have `?` for each parameter, and no `?` otherwise.
 */
interface Database
{
    public function dialect(): Dialect;

    /**
     * @param list<int|string|null> $parameters
     * @return int how many rows it has written, changed or deleted
     *
     * @throws \Exception when the database fails: never is it silent
     */
    public function execute(string $sql, #[\SensitiveParameter] array $parameters = []): int;

    /**
     * @param list<int|string|null> $parameters
     * @return list<array<string, int|string|null>> rows by the names of their columns; numbers may be texts
     *
     * @throws \Exception when the database fails
     */
    public function query(string $sql, array $parameters = []): array;

    /** Whether a transaction is open, so that what is written now could be undone by a rollback. */
    public function isInTransaction(): bool;
}
