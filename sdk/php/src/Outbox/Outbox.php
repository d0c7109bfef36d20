<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

use LeadIntake\Internal\Uuid;
use LeadIntake\LeadCapture;
use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Internal\CaptureJson;
use LeadIntake\Outbox\Internal\Pass;
use LeadIntake\Outbox\Internal\Schema;
use LeadIntake\Outbox\Internal\Table;

/**
 * Leads are stored first, in a table of the website's own database, and sent later. What is in the table is sent until the
 * service has it, over restarts; what needs a person is told; data are erased once they are delivered. Where the database
 * fails, its own exception comes through.
 */
final class Outbox
{
    public const TABLE = 'lead_intake_outbox';

    private readonly Table $table;

    /**
     * @param \PDO|Database $database a connection of the website; SQLite, MySQL, MariaDB or PostgreSQL
     *
     * @throws \InvalidArgumentException when the name can be none, or the database is another one
     */
    public function __construct(\PDO|Database $database, string $table = self::TABLE)
    {
        $database = $database instanceof \PDO ? new PdoDatabase($database) : $database;
        $this->table = new Table($database, self::checkedName($table));
    }

    /** @return list<string> the statements of setUp, for the website's own migrations */
    public static function schema(Dialect $dialect, string $table = self::TABLE): array
    {
        return Schema::of($dialect, self::checkedName($table));
    }

    /**
     * The key of what a form has sent: the same data from the same page are one lead, as after a double click; other data are
     * another, as after a visitor has gone back and mended the address.
     *
     * @param string $formKey a random text that the page carries; it is not stored
     * @param LeadCapture|array<string, mixed> $capture as it is added then
     * @return string UUID of version 8
     *
     * @throws \InvalidArgumentException when the form key is empty, or the lead cannot be stored
     */
    public static function keyFor(string $formKey, #[\SensitiveParameter] LeadCapture|array $capture): string
    {
        if ($formKey === '') {
            throw new \InvalidArgumentException('the form key must not be empty: it tells one page from another');
        }
        return Uuid::fromHash(hash('sha256', "$formKey\0" . CaptureJson::encode($capture), binary: true));
    }

    /**
     * Makes the table where it is missing; several processes may do it at once.
     *
     * @throws \LogicException when a transaction is open, which it would commit on MySQL
     */
    public function setUp(): void
    {
        $this->requireNoTransaction();
        $this->table->create();
    }

    /**
     * Stores a lead, in the transaction that is open: it is there once that is committed. It begins and ends none.
     *
     * @param LeadCapture|array<string, mixed> $capture an array has the names of the API
     * @param ?string $idempotencyKey a UUID that stands for this lead's data for ever, such as keyFor() makes: the same lead once
     *     more changes nothing, and neither does any other once the data are erased; unless given, one is made
     * @return string the key, in lower case
     *
     * @throws \InvalidArgumentException when the lead cannot be stored, or the key is no UUID; nothing was written
     * @throws OutboxException when other data wait under the key; nothing was written
     */
    public function add(#[\SensitiveParameter] LeadCapture|array $capture, ?string $idempotencyKey = null): string
    {
        $json = CaptureJson::encode($capture);
        $key = $idempotencyKey === null ? Uuid::random() : Uuid::from($idempotencyKey);
        if ($key === null) {
            throw new \InvalidArgumentException('the idempotency key must be a UUID with hyphens');
        }
        $this->table->insert($key, $json);
        $stored = $this->table->captureOf($key);
        if ($stored !== null && !CaptureJson::areSame($json, $stored)) {
            throw new OutboxException("other data wait under the idempotency key $key: a new lead needs a new key");
        }
        return $key;
    }

    /**
     * Sends what is due, one after the other: what was tried least, and of that the oldest first. Several processes may do it
     * at once. What a killed one was about to send is sent again five minutes later, with the same key: there is one lead.
     * Nothing is sent while the service has asked to wait (429).
     *
     * @param int $limit how many to send at most
     * @param ?callable(Entry, State): void $onSettled is told of each lead that was delivered or was open already, before its
     *     data are erased: at least once. Where it throws, the lead stays, and is sent again later
     * @param int $keepSettledDays after how many days an entry is deleted whose data are erased
     *
     * @throws \LogicException when a transaction is open, whose rollback would undo what was noted
     * @throws OutboxException when the listener, or what sends and notes, has failed, which the previous exception tells; the
     *     leads concerned stay, the others were sent
     */
    public function deliver(
        LeadIntakeClient $client,
        int $limit = 100,
        ?callable $onSettled = null,
        int $keepSettledDays = 30,
    ): Summary {
        $this->requireNoTransaction();
        if ($keepSettledDays < 0) {
            throw new \InvalidArgumentException('keepSettledDays must be 0 or more');
        }
        $this->table->forgetSettled($keepSettledDays);
        $pass = new Pass($this->table, $client, $onSettled === null ? null : $onSettled(...));
        return $pass->run(self::checkedLimit($limit));
    }

    /**
     * What needs a person, oldest first: what was refused; what waits because of the key or the studio (401, 402, 403); what
     * has waited for more than a day; and what waits and was added more than a day from now, by a clock that was ahead.
     */
    public function needsAttention(int $limit = 100): Attention
    {
        return $this->table->needingAttention(self::checkedLimit($limit));
    }

    /** @return list<Entry> the newest ones, whatever became of them */
    public function newest(int $limit = 100): array
    {
        return $this->table->newest(self::checkedLimit($limit));
    }

    /**
     * Has a lead sent again that was refused or waits, from now on.
     *
     * @param LeadCapture|array<string, mixed>|null $capture the mended lead; null: as it is. After an idempotency conflict a
     *     mended one is to be added anew, without that key
     *
     * @throws \InvalidArgumentException when the mended lead cannot be stored
     * @throws OutboxException when no lead that was refused or waits has this key
     */
    public function retry(string $idempotencyKey, #[\SensitiveParameter] LeadCapture|array|null $capture = null): void
    {
        if (!$this->table->putBack($idempotencyKey, $capture === null ? null : CaptureJson::encode($capture))) {
            throw self::missing($idempotencyKey);
        }
    }

    /**
     * Gives up a lead that was refused or waits, and erases its data.
     *
     * @throws OutboxException when no lead that was refused or waits, or was given up, has this key
     */
    public function discard(string $idempotencyKey): void
    {
        if (!$this->table->discard($idempotencyKey) && !$this->table->has($idempotencyKey, State::Discarded)) {
            throw self::missing($idempotencyKey);
        }
    }

    private function requireNoTransaction(): void
    {
        if ($this->table->isInTransaction()) {
            throw new \LogicException('a transaction is open on this connection, or it does not commit by itself');
        }
    }

    private static function missing(string $key): OutboxException
    {
        return new OutboxException("no lead with the idempotency key $key was refused or waits");
    }

    private static function checkedName(string $table): string
    {
        return preg_match('/^[A-Za-z_][A-Za-z0-9_]{0,62}$/D', $table)
            ? $table
            : throw new \InvalidArgumentException('the name of a table has up to 63 letters of ASCII, digits and _');
    }

    private static function checkedLimit(int $limit): int
    {
        return $limit >= 1 ? $limit : throw new \InvalidArgumentException('limit must be 1 or more');
    }
}
