<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Internal\Outcomes;
use LeadIntake\Outbox\Difference;
use LeadIntake\Outbox\Reconciliation;
use LeadIntake\Outbox\State;

/**
 * A comparison as all outboxes store it: as JSON, whose times are milliseconds since 1970.
 *
 * @internal
 */
final class Run
{
    /** An older comparison is not continued: its numbers would mix different days. */
    private const MAX_AGE_MS = 86_400_000;

    public bool $isComplete = false;
    public ?string $stoppedBecause = null;

    /** @var ?array{string, string} id and key of the last compared row */
    public ?array $after = null;

    /** The cursor of the next page; null: the first one. */
    public ?string $cursor = null;

    /** Whether it reads pages; otherwise it reads leads one by one. */
    public bool $isPaging = true;

    /** The number of pages without a lead of the outbox. */
    public int $idlePages = 0;
    public int $requests = 0;

    /** The id of a lead of this studio; null: none was seen yet. */
    public ?string $seen = null;
    public int $sent = 0;
    public int $there = 0;
    public int $alreadyOpen = 0;
    public int $openLeadThere = 0;
    public int $otherData = 0;
    public int $notRead = 0;
    public int $waiting = 0;
    public int $refused = 0;

    /** How many leads in a row that no page had could not be read one by one either. */
    public int $confirmed = 0;

    /** @var list<array{key: string, leadId: string, state: string, kind: string, createdAt: int|float}> */
    public array $differences = [];

    /**
     * @param string $upTo the newest id when it began
     * @param int $rows the number of rows when it began
     * @param int $withoutId rows without the id of a lead
     */
    public function __construct(
        public string $upTo,
        public int $rows,
        public int|float|null $since,
        public int $withoutId,
        public int|float $startedAt,
    ) {
    }

    public static function from(string $json): ?self
    {
        if ($json === '') {
            return null;
        }
        $stored = json_decode($json, true, flags: JSON_THROW_ON_ERROR);
        $run = new self($stored['upTo'], $stored['rows'], $stored['since'], $stored['withoutId'], $stored['startedAt']);
        foreach ($stored as $name => $value) {
            $run->$name = $value;
        }
        return $run;
    }

    public function toJson(): string
    {
        return json_encode($this, JSON_THROW_ON_ERROR);
    }

    public function isToGoOn(): bool
    {
        return !$this->isComplete && abs(Table::now() - $this->startedAt) <= self::MAX_AGE_MS;
    }

    /** The number of leads that were compared. */
    public function done(): int
    {
        return $this->sent + $this->alreadyOpen;
    }

    public function report(): Reconciliation
    {
        $left = $this->isComplete ? 0 : max(0, $this->rows - $this->done());
        return new Reconciliation(
            $this->isComplete,
            $this->stoppedBecause,
            Table::time($this->startedAt),
            $this->since === null ? null : Table::time($this->since),
            $this->sent,
            $this->there,
            $this->alreadyOpen,
            $this->openLeadThere,
            $this->otherData,
            $this->notRead,
            $this->withoutId,
            $left,
            $this->waiting,
            $this->refused,
            array_map(self::difference(...), $this->differences),
            $this->requests,
            $this->summary($left),
        );
    }

    /** @param array{key: string, leadId: string, state: string, kind: string, createdAt: int|float} $stored */
    public static function difference(array $stored): Difference
    {
        return new Difference(
            $stored['key'],
            $stored['leadId'],
            State::from($stored['state']),
            $stored['kind'],
            match ($stored['kind']) {
                'not_there' => Outcomes::REASON_NOT_THERE,
                'other_data' => Outcomes::REASON_OTHER_DATA,
                'not_read' => Outcomes::REASON_NOT_READ,
            },
            Table::time($stored['createdAt']),
        );
    }

    /** Returns the summary, in the same sentences in all languages. */
    private function summary(int $left): string
    {
        $number = static fn (int $value): string => number_format($value);
        $since = $this->since === null ? '' : ' since ' . Table::time($this->since)->format('Y-m-d');
        $sentences = [
            [!$this->isComplete, "Not finished, {$number($left)} left ($this->stoppedBecause). So far:"],
            [true, "{$number($this->sent)} sent$since, {$number($this->there)} there."],
            [
                $this->alreadyOpen > 0,
                "{$number($this->alreadyOpen)} with an open lead of another creation, {$number($this->openLeadThere)} of these leads there.",
            ],
            [
                $this->done() > 0 && $this->there + $this->openLeadThere === 0,
                'None is there: is the API key of another studio, or the address of another deployment?',
            ],
            [$this->otherData > 0, "{$number($this->otherData)} there with other data."],
            [$this->notRead > 0, "{$number($this->notRead)} that the service has failed to read."],
            [$this->withoutId > 0, "{$number($this->withoutId)} not compared: the outbox has no id of their leads."],
            [$this->waiting > 0, "{$number($this->waiting)} waiting."],
            [$this->refused > 0, "{$number($this->refused)} refused."],
        ];
        return implode(' ', array_column(array_filter($sentences, static fn (array $each): bool => $each[0]), 1));
    }
}
