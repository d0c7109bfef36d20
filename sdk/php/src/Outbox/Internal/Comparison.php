<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Internal\Outcomes;
use LeadIntake\Lead;
use LeadIntake\LeadIntakeClient;
use LeadIntake\LeadList;
use LeadIntake\Outbox\Difference;
use LeadIntake\Outbox\OutboxException;

/**
 * Compares the sent leads with the service. Merges pages of leads with the rows, both by descending id, with a few hundred of
 * each in memory. When it has read as many pages without a lead of the outbox as rows are left, it reads the remaining leads one
 * by one. So it makes at most twice the requests of the cheaper way, however many other leads the studio has.
 *
 * @internal
 */
final class Comparison
{
    private const PAGE_SIZE = 100;

    /** The maximum number of differences in a report. */
    private const MAX_DIFFERENCES = 100;

    private readonly PacedReads $reads;

    /** @var list<array{key: string, leadId: string, state: string, createdAt: int, hasData: bool}> */
    private array $batch = [];

    private int $saved = 0;

    /** @param ?\Closure(Difference): void $onDifference */
    public function __construct(
        LeadIntakeClient $client,
        private readonly SentRows $rows,
        private readonly Memo $memo,
        private readonly string $token,
        private Run $run,
        ?float $maxSeconds,
        private readonly ?\Closure $onDifference,
    ) {
        $this->reads = new PacedReads($client, $maxSeconds, $this->save(...));
    }

    /** @throws OutboxException when the key may not read leads, or another comparison has begun */
    public function run(): Run
    {
        try {
            // With the key of another studio, the numbers would mix both studios.
            if ($this->run->seen !== null && $this->lead($this->run->seen) === null) {
                $this->run = $this->rows->beginning();
            }
            while ($this->run->isPaging && !$this->comparePage()) {
                $this->save();
            }
            if (!$this->run->isPaging) {
                $this->compareOneByOne();
            }
            $this->run->isComplete = true;
            $this->run->stoppedBecause = null;
        } catch (Stopped $stopped) {
            $this->run->stoppedBecause = $stopped->getMessage();
        }
        $this->save();
        return $this->run;
    }

    /** Compares the rows of one page; returns whether it was the last one. */
    private function comparePage(): bool
    {
        $before = $this->run->done();
        $page = $this->page();
        $leads = [];
        foreach ($page->leads as $lead) {
            $leads[strtolower($lead->id)] = $lead;
        }
        $ids = array_keys($leads);
        $this->run->seen ??= $ids[0] ?? null;
        if ($this->run->seen === null) {
            // A studio without leads needs no confirmation that these are missing.
            $this->run->confirmed = Outcomes::PAGES_MISSED;
        }
        $lowest = $page->nextCursor === null || $ids === [] ? '' : $ids[count($ids) - 1];
        while (($row = $this->next()) !== null && strcmp($row['leadId'], $lowest) >= 0) {
            $isToRead = !isset($leads[$row['leadId']]) && $this->run->confirmed < Outcomes::PAGES_MISSED;
            $this->settle($row, $isToRead ? $this->missedLead($row['leadId']) : $leads[$row['leadId']] ?? null);
        }
        $this->run->idlePages += (int) ($this->run->done() === $before);
        $this->run->cursor = $page->nextCursor;
        if ($page->nextCursor === null) {
            return true;
        }
        $this->run->isPaging = $this->run->idlePages < $this->run->rows - $this->run->done();
        return false;
    }

    private function compareOneByOne(): void
    {
        while (($row = $this->next()) !== null) {
            $this->settle($row, $this->lead($row['leadId']));
            $this->save();
        }
    }

    private function page(): LeadList
    {
        $cursor = $this->run->cursor;
        $page = $this->reads->read(static fn (LeadIntakeClient $client): LeadList => $client->listLeads(self::PAGE_SIZE, $cursor));
        return $page ?? throw new Stopped('the service has refused the position: begin anew');
    }

    /** Reads a lead; false when the service cannot, which does not end the comparison; null when it is not there. */
    private function lead(string $id): Lead|false|null
    {
        return $this->reads->read(static fn (LeadIntakeClient $client): Lead => $client->getLead($id), false);
    }

    /** Reads a lead that no page has, and counts how many such leads in a row were missing. */
    private function missedLead(string $id): Lead|false|null
    {
        $lead = $this->lead($id);
        if ($lead !== false) {
            $this->run->confirmed = $lead === null ? $this->run->confirmed + 1 : 0;
        }
        return $lead;
    }

    /**
     * Counts a row.
     *
     * @param array{key: string, leadId: string, state: string, createdAt: int, hasData: bool} $row
     */
    private function settle(array $row, #[\SensitiveParameter] Lead|false|null $lead): void
    {
        $isOther = $lead instanceof Lead && $row['hasData'] && $this->rows->haveOther($row, $lead);
        $kind = $lead === null ? 'not_there' : ($lead === false ? 'not_read' : ($isOther ? 'other_data' : null));
        if ($kind !== null) {
            $this->tell(['kind' => $kind] + $row);
        }
        $this->run->notRead += (int) ($lead === false);
        $isDelivered = $row['state'] === 'delivered';
        $isDelivered ? $this->run->sent++ : $this->run->alreadyOpen++;
        if ($lead instanceof Lead) {
            $isDelivered ? $this->run->there++ : $this->run->openLeadThere++;
        }
        $this->run->otherData += (int) $isOther;
        $this->run->after = [$row['leadId'], $row['key']];
        array_shift($this->batch);
    }

    /** @param array{key: string, leadId: string, state: string, kind: string, createdAt: int, hasData: bool} $difference */
    private function tell(array $difference): void
    {
        unset($difference['hasData']);
        $this->onDifference === null || ($this->onDifference)(Run::difference($difference));
        if (count($this->run->differences) < self::MAX_DIFFERENCES) {
            $this->run->differences[] = $difference;
        }
    }

    /**
     * The next row to compare, by descending id.
     *
     * @return ?array{key: string, leadId: string, state: string, createdAt: int, hasData: bool}
     */
    private function next(): ?array
    {
        if ($this->batch === []) {
            $this->batch = $this->rows->behind($this->run->upTo, $this->run->after);
        }
        return $this->batch[0] ?? null;
    }

    private function save(): void
    {
        $this->run->requests += $this->reads->made - $this->saved;
        $this->saved = $this->reads->made;
        $this->rows->countUnsent($this->run);
        if (!$this->memo->write($this->run->toJson(), $this->token, $this->token)) {
            throw new OutboxException('another comparison of this outbox has begun, and replaces this one');
        }
    }
}
