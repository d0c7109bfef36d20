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
    private const MAX_UNANSWERED = 3;

    private const FIRST_BACK_OFF_MS = 30_000;
    private const MAX_BACK_OFF_MS = 3_600_000;

    /** The maximum wait, even when the service asks for a longer one. */
    private const MAX_WAIT_MS = 24 * 3_600_000;

    private int $delivered = 0;
    private int $alreadyOpen = 0;
    private int $refused = 0;
    private int $postponed = 0;
    private ?\Throwable $error = null;

    /**
     * @param ?\Closure(Entry, State): void $onSettled
     * @param \Closure(): void $tellWaiting called at the end
     */
    public function __construct(
        private readonly Table $table,
        private readonly LeadIntakeClient $client,
        private readonly ?\Closure $onSettled,
        private readonly \Closure $tellWaiting,
    ) {
    }

    /** @throws OutboxException when a listener or sending an entry has failed; the other due entries were sent nevertheless */
    public function run(int $limit): Summary
    {
        $stoppedBecause = $this->table->pause();
        $unanswered = 0;
        foreach ($stoppedBecause === null ? $this->table->due($limit) : [] as $row) {
            $entry = $this->table->takeUp($row);
            if ($entry === null) {
                continue;
            }
            $reason = $this->attempt($entry);
            $unanswered = Reason::isUnanswered($reason) ? $unanswered + 1 : 0;
            if (Reason::isOfAll($reason) || $unanswered === self::MAX_UNANSWERED) {
                $stoppedBecause = $reason;
                break;
            }
        }
        if ($this->delivered + $this->alreadyOpen > 0) {
            $this->table->release();
        }
        try {
            ($this->tellWaiting)();
        } catch (\Throwable $error) {
            $this->fail($error);
        }
        if ($this->error !== null) {
            $message = 'sending a lead, onSettled or onWaiting has failed: the leads keep waiting';
            throw new OutboxException($message, previous: $this->error);
        }
        return new Summary(
            $this->delivered,
            $this->alreadyOpen,
            $this->refused,
            $this->postponed,
            $this->table->countWaiting(),
            $stoppedBecause,
        );
    }

    /** @return string the reason, if the service makes the entry wait or did not answer; otherwise empty */
    private function attempt(#[\SensitiveParameter] Entry $entry): string
    {
        // An object without named fields is a list in PHP, which the client does not send.
        if ($entry->capture === null || array_is_list($entry->capture)) {
            $this->refuse($entry, Outcomes::REASON_UNREADABLE);
            return '';
        }
        try {
            $created = $this->client->createLead($entry->capture, $entry->idempotencyKey);
        } catch (LeadAlreadyOpenException $problem) {
            $reason = isset($entry->capture['note']) ? Outcomes::REASON_NOT_TAKEN : null;
            $this->settle($entry, State::AlreadyOpen, $problem->existingLeadId, $reason);
            return '';
        } catch (LeadIntakeException $error) {
            return $this->handleFailure($entry, $error);
        } catch (\Throwable $error) {
            // The website's own transport may throw this. It must not hold up other leads.
            $this->postponeAfter($error, $entry);
            return '';
        }
        // This website sent nothing else with this key, so the lead belongs to another visit.
        $isOther = $created->replayed && $created->attempts === 1 && $entry->attempts === 1;
        $this->settle($entry, State::Delivered, $created->lead->id, $isOther ? Outcomes::REASON_REPLAYED : null);
        return '';
    }

    private function handleFailure(#[\SensitiveParameter] Entry $entry, LeadIntakeException $error): string
    {
        $reason = Reason::of($error);
        $isOfAll = Reason::isOfAll($reason);
        if ($error instanceof ProblemException && !$isOfAll && !Retries::mayHelpAfter($error->status)) {
            $this->refuse($entry, $reason);
            return '';
        }
        // The end of an outage must be noticed as soon as the end of a pause.
        $waitMs = $isOfAll || Reason::isUnanswered($reason)
            ? self::pauseMs($error->retryAfterSeconds)
            : self::backOffMs($entry->attempts, $error->retryAfterSeconds ?? 0);
        // An attempt does not count if it wrote nothing and the lead did not cause its failure.
        $isFree = $isOfAll && $error->written === Written::No;
        $this->postpone($entry, $entry->attempts - (int) $isFree, $waitMs, $reason);
        return $reason;
    }

    /** @param ?string $reason why the data is kept for a person, unless the listener gets it; null: it is erased */
    private function settle(#[\SensitiveParameter] Entry $entry, State $outcome, ?string $leadId, ?string $reason): void
    {
        $leadId = Uuid::from($leadId);
        if ($this->onSettled !== null) {
            try {
                $settled = ['leadId' => $leadId, 'reason' => $reason] + get_object_vars($entry);
                ($this->onSettled)(new Entry(...$settled), $outcome);
                $reason = null;
            } catch (\Throwable $error) {
                $this->postponeAfter($error, $entry, 'listener: ');
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

    /** Postpones an entry. The reason names the error and its place: its message may contain the visitor's data. */
    private function postponeAfter(\Throwable $error, #[\SensitiveParameter] Entry $entry, string $where = ''): void
    {
        $this->fail($error);
        $reason = Reason::cut($where . get_debug_type($error) . ' at ' . basename($error->getFile()) . ":{$error->getLine()}");
        $this->postpone($entry, $entry->attempts, self::backOffMs($entry->attempts), $reason);
    }

    /** Keeps the first exception for the end of the pass. A signal handler's exception ends the pass at once. */
    private function fail(\Throwable $error): void
    {
        if (Signals::haveThrown($error)) {
            throw $error;
        }
        $this->error ??= $error;
    }

    private function postpone(#[\SensitiveParameter] Entry $entry, int $attempts, int $waitMs, string $reason): void
    {
        if ($this->table->postpone($entry, $attempts, $waitMs, $reason)) {
            $this->postponed++;
        }
    }

    /** Returns the wait that the service has asked for; the first backoff when it has not. */
    private static function pauseMs(?int $retryAfterSeconds): int
    {
        return $retryAfterSeconds === null ? self::FIRST_BACK_OFF_MS : (int) min(self::MAX_WAIT_MS, $retryAfterSeconds * 1000);
    }

    /** Returns the backoff, which doubles with each attempt, minus up to a half of jitter, and is at least Retry-After. */
    private static function backOffMs(int $attempts, int $retryAfterSeconds = 0): int
    {
        $longest = min(self::MAX_BACK_OFF_MS, self::FIRST_BACK_OFF_MS * 2 ** ($attempts - 1));
        $backOff = $longest * (1 - mt_rand() / mt_getrandmax() / 2);
        return (int) min(self::MAX_WAIT_MS, max($backOff, $retryAfterSeconds * 1000));
    }
}
