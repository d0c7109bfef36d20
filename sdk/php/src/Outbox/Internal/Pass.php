<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Exception\LeadAlreadyOpenException;
use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Exception\ProblemException;
use LeadIntake\Internal\Outcomes;
use LeadIntake\Internal\Retries;
use LeadIntake\Internal\Signals;
use LeadIntake\Internal\Uuid;
use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Entry;
use LeadIntake\Outbox\OutboxException;
use LeadIntake\Outbox\State;
use LeadIntake\Outbox\Summary;
use LeadIntake\Written;

/**
 * Sends all due entries once. An entry is leased before it is sent, and settled after the response: if the process is killed in
 * between, the entry stays waiting and is sent again with the same key.
 *
 * @internal
 */
final class Pass
{
    /** The number of consecutive attempts without a response after which the service counts as unavailable. */
    private const MAX_SILENCES = 3;

    private int $delivered = 0;
    private int $alreadyOpen = 0;
    private int $refused = 0;
    private int $postponed = 0;
    private int $silences = 0;
    private ?string $stoppedBecause = null;
    private ?\Throwable $error = null;

    /** @param ?\Closure(Entry, State): void $onSettled */
    public function __construct(
        private readonly Table $table,
        private readonly LeadIntakeClient $client,
        private readonly ?\Closure $onSettled,
    ) {
    }

    /** @throws OutboxException when an entry caused an exception; the other due entries were sent nevertheless */
    public function run(int $limit): Summary
    {
        $this->stoppedBecause = $this->table->pause();
        foreach ($this->stoppedBecause === null ? $this->table->due($limit) : [] as $row) {
            $entry = $this->table->takeUp($row);
            if ($entry !== null) {
                $this->attempt($entry);
            }
            if ($this->stoppedBecause !== null) {
                break;
            }
        }
        if ($this->delivered + $this->alreadyOpen > 0) {
            $this->table->release();
        }
        if ($this->error !== null) {
            $message = 'onSettled or sending a lead has failed: the leads concerned keep waiting';
            throw new OutboxException($message, previous: $this->error);
        }
        return new Summary(
            $this->delivered,
            $this->alreadyOpen,
            $this->refused,
            $this->postponed,
            $this->table->countWaiting(),
            $this->stoppedBecause,
        );
    }

    private function attempt(#[\SensitiveParameter] Entry $entry): void
    {
        if ($entry->capture === null) {
            $this->refuse($entry, Outcomes::REASON_UNREADABLE);
            return;
        }
        try {
            $created = $this->client->createLead($entry->capture, $entry->idempotencyKey);
        } catch (LeadAlreadyOpenException $problem) {
            $reason = isset($entry->capture['note']) ? Outcomes::REASON_NOT_TAKEN : null;
            $this->settle($entry, State::AlreadyOpen, $problem->existingLeadId, $reason);
            return;
        } catch (LeadIntakeException $error) {
            $this->handleFailure($entry, $error);
            return;
        } catch (\Throwable $error) {
            // Such as of a transport of the website's own: it must not hold up other leads.
            $this->postponeAfter($error, $entry, Reason::ofError($error));
            return;
        }
        // Nothing else was sent with this key from here: the lead is that of another visit.
        $isOther = $created->replayed && $created->attempts === 1 && $entry->attempts === 1;
        $this->settle($entry, State::Delivered, $created->lead->id, $isOther ? Outcomes::REASON_REPLAYED : null);
    }

    private function handleFailure(#[\SensitiveParameter] Entry $entry, LeadIntakeException $error): void
    {
        $reason = Reason::of($error);
        $isOfAll = Reason::isOfAll($reason);
        if ($error instanceof ProblemException && !$isOfAll && !Retries::mayHelpAfter($error->status)) {
            $this->refuse($entry, $reason);
            return;
        }
        $isUnanswered = Reason::isUnanswered($reason);
        $this->silences = $isUnanswered ? $this->silences + 1 : 0;
        // The end of an outage is noticed as soon as that of a pause.
        $waitMs = $isOfAll || $isUnanswered
            ? BackOff::pauseMs($error->retryAfterSeconds)
            : BackOff::afterMs($entry->attempts, $error->retryAfterSeconds);
        // An attempt that has written nothing, and whose cause is not the lead's, does not count.
        $isFree = $isOfAll && $error->written === Written::No;
        $this->postpone($entry, $entry->attempts - (int) $isFree, $waitMs, $reason);
        $this->stoppedBecause = $isOfAll || $this->silences === self::MAX_SILENCES ? $reason : null;
    }

    /** @param ?string $reason why the data are kept for a person, unless the listener gets them; null: they are erased */
    private function settle(#[\SensitiveParameter] Entry $entry, State $outcome, ?string $leadId, ?string $reason): void
    {
        $leadId = Uuid::from($leadId);
        if ($this->onSettled !== null) {
            try {
                $settled = ['leadId' => $leadId, 'reason' => $reason] + get_object_vars($entry);
                ($this->onSettled)(new Entry(...$settled), $outcome);
                $reason = null;
            } catch (\Throwable $error) {
                $this->postponeAfter($error, $entry, Reason::ofListener($error));
                return;
            }
        }
        if ($this->table->settle($entry, $outcome, $leadId, $reason)) {
            $outcome === State::Delivered ? $this->delivered++ : $this->alreadyOpen++;
        }
    }

    private function refuse(#[\SensitiveParameter] Entry $entry, string $reason): void
    {
        if ($this->table->refuse($entry, $reason)) {
            $this->refused++;
        }
    }

    private function postponeAfter(\Throwable $error, #[\SensitiveParameter] Entry $entry, string $reason): void
    {
        if (Signals::haveThrown($error)) {
            throw $error;
        }
        $this->error ??= $error;
        $this->silences = 0;
        $this->postpone($entry, $entry->attempts, BackOff::afterMs($entry->attempts, null), $reason);
    }

    private function postpone(#[\SensitiveParameter] Entry $entry, int $attempts, int $waitMs, string $reason): void
    {
        if ($this->table->postpone($entry, $attempts, $waitMs, $reason)) {
            $this->postponed++;
        }
    }
}
