<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Exception\ProblemException;
use LeadIntake\Internal\Uuid;
use LeadIntake\LeadCapture;
use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Internal\CaptureJson;
use LeadIntake\Outbox\Internal\Comparison;
use LeadIntake\Outbox\Internal\Memo;
use LeadIntake\Outbox\Internal\Pass;
use LeadIntake\Outbox\Internal\Run;
use LeadIntake\Outbox\Internal\Schema;
use LeadIntake\Outbox\Internal\SentRows;
use LeadIntake\Outbox\Internal\Table;
use LeadIntake\Outbox\Internal\TableRequired;
use LeadIntake\Outbox\Internal\Waiting;

/**
 * Stores leads in a table of the website's own database first, and sends them later. Leads in the table are retried until
 * they are delivered, across restarts; their data is erased after delivery. Exceptions of the database are passed through;
 * a missing table is an OutboxException.
 */
final class Outbox
{
    /** The default name of the table, deprecated. */
    public const TABLE = 'lead_intake_outbox';

    private const DEFAULT_TABLE_WARNING = 'The default table ' . self::TABLE . ' of an outbox is deprecated, because a second website'
        . " in the same database would send its leads: name a table, such as new Outbox(…, 'example_com_leads'), or the present one.";

    private const RECONCILIATION = 'reconciliation';

    private readonly Table $table;

    private readonly Database $database;

    private readonly string $name;

    private readonly bool $isTableNamed;

    /**
     * @param \PDO|Database $database a connection of the website; SQLite, MySQL, MariaDB or PostgreSQL
     * @param ?string $table the table's name. Name it after the website, because a website sends all leads in its table. The
     *     default, `lead_intake_outbox`, is deprecated
     *
     * @throws \InvalidArgumentException when the table name is invalid or the database is not supported
     */
    public function __construct(\PDO|Database $database, ?string $table = null)
    {
        $this->isTableNamed = $table !== null;
        $this->database = new TableRequired($database instanceof \PDO ? new PdoDatabase($database) : $database);
        $this->name = self::checkedName($table ?? self::TABLE);
        $this->table = new Table($this->database, $this->name);
    }

    /** @return list<string> the statements of setUp, for the website's own migrations */
    public static function schema(Dialect $dialect, string $table = self::TABLE): array
    {
        return Schema::of($dialect, self::checkedName($table));
    }

    /**
     * Derives the idempotency key of a form submission: equal for the same form and data within an hour, such as a double
     * click; different when any differs, such as after the visitor corrects the address. Without the hour, all visits to a
     * cached page would share one key.
     *
     * @param ?string $formKey a random string rendered into the form, such as a UUID; it is not stored. A form without one has the
     *     key '', as if all visitors had one cached page
     * @param LeadCapture|array<string, mixed> $capture the same data as given to add()
     * @param ?\DateTimeInterface $submittedAt when the form was submitted; default: now
     * @return string a UUID of version 8
     *
     * @throws \InvalidArgumentException when the lead cannot be stored
     */
    public static function keyFor(
        ?string $formKey,
        #[\SensitiveParameter] LeadCapture|array $capture,
        ?\DateTimeInterface $submittedAt = null,
    ): string {
        $hour = (int) floor(($submittedAt?->getTimestamp() ?? time()) / 3600);
        return Uuid::fromHash(hash('sha256', "$formKey\0$hour\0" . CaptureJson::canonical($capture), binary: true));
    }

    /**
     * Creates the table if it does not exist. Safe to call concurrently from several processes. Warns if no table was named.
     *
     * @throws \LogicException when a transaction is open, which it would commit on MySQL
     */
    public function setUp(): void
    {
        $this->requireNoTransaction();
        // Only this warns: cron would mail each warning of a worker or a report.
        $this->isTableNamed || trigger_error(self::DEFAULT_TABLE_WARNING, E_USER_DEPRECATED);
        Schema::create($this->database, Schema::of($this->database->dialect(), $this->name));
    }

    /**
     * Stores a lead within the open transaction, which commits it or rolls it back. Neither begins nor ends a transaction.
     *
     * Leaves out optional texts that are empty or blank, and makes each line break of the note one character.
     *
     * Does nothing when the key is already stored with the same data, or with data that has been erased since.
     *
     * @param LeadCapture|array<string, mixed> $capture an array has the field names of the API
     * @param ?string $idempotencyKey a UUID that identifies this lead's data permanently, such as keyFor() returns; default: a
     *     new one
     * @return string the key, in lower case
     *
     * @throws \InvalidArgumentException when the lead cannot be stored, or the service does not accept the key; nothing was written
     * @throws OutboxException when the key is stored with different data; nothing was written
     */
    public function add(#[\SensitiveParameter] LeadCapture|array $capture, ?string $idempotencyKey = null): string
    {
        $json = CaptureJson::encode($capture);
        $key = $idempotencyKey === null ? Uuid::random() : Uuid::from($idempotencyKey);
        if ($key === null) {
            throw new \InvalidArgumentException('the idempotency key must be a UUID with hyphens, of version 1 to 8');
        }
        $this->table->insert($key, $json);
        $stored = $this->table->captureOf($key);
        if ($stored !== null && !CaptureJson::areSame($json, $stored)) {
            throw new OutboxException("the idempotency key $key is stored with other data: a new lead needs a new key");
        }
        return $key;
    }

    /**
     * Makes one pass: sends the due leads, fewest attempts first, then due for longest. Several processes may run concurrently. A lead
     * in flight when its process was killed is sent again five minutes later, with the same key: only one lead is created.
     * Sends nothing before the Retry-After of a 429, a 503 or an intermediary has passed.
     *
     * @param int $limit the maximum number of leads to send
     * @param ?callable(Entry, State): void $onSettled called for each delivered or already open lead before its data is
     *     erased; at least once. When it throws, the lead keeps its data and is retried later. Without it, leads with a
     *     `reason` are kept
     * @param int $keepSettledDays how many days entries of settled leads stay in the table, without their data
     * @param ?callable(WaitingLeads): void $onWaiting called at the end of a pass with the leads that have waited for more than
     *     a day, for instance to mail this; at most once a day, over all workers. When it throws, it is called again in an hour
     *
     * @throws \LogicException when a transaction is open: a rollback would undo the stored outcomes
     * @throws OutboxException when a listener or sending a lead has failed, see getPrevious(); its leads keep waiting, the
     *     others were sent. A signal handler's exception, such as a job's time limit, ends the pass
     */
    public function deliver(
        LeadIntakeClient $client,
        int $limit = 100,
        ?callable $onSettled = null,
        int $keepSettledDays = 30,
        ?callable $onWaiting = null,
    ): Summary {
        $this->requireNoTransaction();
        if ($keepSettledDays < 0) {
            throw new \InvalidArgumentException('keepSettledDays must be 0 or more');
        }
        $this->table->deleteSettled($keepSettledDays);
        $onSettled = $onSettled === null ? null : $onSettled(...);
        $tellWaiting = function () use ($onWaiting): void {
            $onWaiting === null || Waiting::tell($this->database, $this->name, $onWaiting(...));
        };
        return (new Pass($this->table, $client, $onSettled, $tellWaiting))->run(self::checkedLimit($limit));
    }

    /**
     * Returns the leads that need a person's attention, oldest first: leads that were refused, that wait because of the API
     * key, the studio or the address (401 to 405), that have waited for more than a day, that were added by a clock more than a day
     * ahead, or whose message perhaps nobody got.
     */
    public function needsAttention(int $limit = 100): Attention
    {
        return $this->table->needingAttention(self::checkedLimit($limit));
    }

    /** Summarizes all waiting leads: how many, since when, and why; null: there are none. */
    public function waiting(): ?WaitingLeads
    {
        return Waiting::in($this->database, $this->name, "state = 'waiting'");
    }

    /** @return list<Entry> the newest entries in any state */
    public function newest(int $limit = 100): array
    {
        return $this->table->newest(self::checkedLimit($limit));
    }

    /**
     * Makes a lead due immediately, with its key. For a delivered lead, the service would only return the earlier lead: add it
     * with another key instead.
     *
     * @param LeadCapture|array<string, mixed>|null $capture replaces its data; null keeps it. After an idempotency conflict
     *     add the corrected lead again, with another key
     *
     * @throws \InvalidArgumentException when the new data cannot be stored
     * @throws OutboxException when no lead with data has this key
     */
    public function retry(string $idempotencyKey, #[\SensitiveParameter] LeadCapture|array|null $capture = null): void
    {
        if (!$this->table->retry($idempotencyKey, $capture === null ? null : CaptureJson::encode($capture))) {
            throw self::settled($idempotencyKey, $this->table->stateOf($idempotencyKey));
        }
    }

    /**
     * Discards a lead and erases its data.
     *
     * @throws OutboxException when no lead with data, and no discarded one, has this key
     */
    public function discard(string $idempotencyKey): void
    {
        if (!$this->table->discard($idempotencyKey)) {
            $state = $this->table->stateOf($idempotencyKey);
            $state === State::Discarded || throw self::settled($idempotencyKey, $state);
        }
    }

    /**
     * Compares the leads that were sent with the service. It only reads. The next call within a day continues one that was
     * stopped or killed. Leaves half of the quota to the website.
     *
     * @param LeadIntakeClient $client its key has the scope `leads.read`
     * @param ?float $maxSeconds no request begins and no wait for the quota ends after this time; null: no limit
     * @param bool $restart begins anew instead of where the last call stopped
     * @param ?callable(Difference): void $onDifference called at least once for each difference; after a crash or an exception,
     *     again for some
     *
     * @throws OutboxException when the key may not read leads, or another comparison has begun
     * @throws \LogicException when a transaction is open
     */
    public function reconcile(
        LeadIntakeClient $client,
        ?float $maxSeconds = null,
        bool $restart = false,
        ?callable $onDifference = null,
    ): Reconciliation {
        $this->requireNoTransaction();
        $rows = new SentRows($this->database, $this->name);
        $memo = new Memo($this->database, $this->name, self::RECONCILIATION);
        $token = Uuid::random();
        // A later comparison takes over, and ends the earlier one.
        $memo->take($token);
        $earlier = Run::from($memo->read()[0]);
        $run = $earlier?->isToGoOn() && !$restart ? $earlier : $rows->beginning();
        $listener = $onDifference === null ? null : $onDifference(...);
        return (new Comparison($client, $rows, $memo, $token, $run, $maxSeconds, $listener))->run()->report();
    }

    /** Returns the latest comparison, finished or not; null: there was none. */
    public function lastReconciliation(): ?Reconciliation
    {
        return Run::from((new Memo($this->database, $this->name, self::RECONCILIATION))->read()[0])?->report();
    }

    /**
     * Schedules a sent lead that the service no longer has to be sent again, with its key and data. Looks it up first. The
     * service refuses an erased lead. It creates a lost one again, unless its contact has an open lead.
     *
     * @param bool $mayCreate confirms that this may create another lead: a service that has lost the lead has lost its key, too
     * @param LeadCapture|array<string, mixed>|null $capture the data, if the outbox has erased it; null: the data that the outbox has kept
     *
     * @throws \InvalidArgumentException when the data cannot be stored
     * @throws OutboxException when the service has the lead, it was not sent, has no data, or $mayCreate is false
     * @throws LeadIntakeException when the service could not be asked
     */
    public function sendAgain(
        LeadIntakeClient $client,
        string $idempotencyKey,
        bool $mayCreate,
        #[\SensitiveParameter] LeadCapture|array|null $capture = null,
    ): void {
        $entry = $this->table->sent($idempotencyKey)
            ?? throw new OutboxException("no lead with the idempotency key $idempotencyKey was sent");
        $data = $capture ?? $entry->capture
            ?? throw new OutboxException("the data of the lead with the idempotency key $idempotencyKey is erased: pass it, to send it again");
        if (!$mayCreate) {
            throw new OutboxException("if the service no longer has the idempotency key $idempotencyKey, such as after its database"
                . ' was restored, this creates another lead: confirm that by mayCreate');
        }
        if ($entry->leadId !== null && self::isThere($client, $entry->leadId)) {
            throw new OutboxException("the lead with the idempotency key $idempotencyKey is at the service: there is nothing to send");
        }
        if (!$this->table->sendAgain($entry->idempotencyKey, CaptureJson::encode($data))) {
            throw new OutboxException("the lead with the idempotency key $idempotencyKey was changed in the meantime");
        }
    }

    private static function isThere(LeadIntakeClient $client, string $leadId): bool
    {
        try {
            $client->getLead($leadId);
            return true;
        } catch (ProblemException $problem) {
            return $problem->problemCode === 'integration_lead_not_found' ? false : throw $problem;
        }
    }

    private function requireNoTransaction(): void
    {
        if ($this->database->isInTransaction()) {
            throw new \LogicException('a transaction is open on this connection, or it does not commit by itself');
        }
    }

    private static function settled(string $key, ?State $state): OutboxException
    {
        return new OutboxException($state === null
            ? "no lead has the idempotency key $key: compare the key and the table; settled leads are deleted later"
            : "the lead with the idempotency key $key is $state->value, and its data is erased: add it again, with another key");
    }

    private static function checkedName(string $table): string
    {
        return preg_match('/^[A-Za-z_][A-Za-z0-9_]{0,62}$/D', $table)
            ? $table
            : throw new \InvalidArgumentException('the name of the table must be 1 to 63 letters, digits and _, and not begin with a digit');
    }

    private static function checkedLimit(int $limit): int
    {
        return $limit >= 1 ? $limit : throw new \InvalidArgumentException('limit must be 1 or more');
    }
}
