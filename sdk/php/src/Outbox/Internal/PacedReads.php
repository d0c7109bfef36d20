<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Exception\ProblemException;
use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\OutboxException;
use LeadIntake\Quota;

/**
 * Makes reads that leave half of the quota to the website's own creations.
 *
 * @internal
 */
final class PacedReads
{
    /** This many requests ignore the quota, so that each call compares at least one lead. */
    private const MIN_REQUESTS = 3;

    /** A longer wait ends a comparison: after a day, it would begin anew. */
    private const MAX_PAUSE_SECONDS = 86_400;

    /** Codes that say that no such lead, or no such page, can be read. */
    private const NOT_THERE_CODES = ['integration_lead_not_found', 'integration_invalid_request'];

    /** The number of requests. */
    public int $made = 0;

    private readonly float $end;

    /** @param \Closure(): void $beforeWait */
    public function __construct(
        private readonly LeadIntakeClient $client,
        ?float $maxSeconds,
        private readonly \Closure $beforeWait,
    ) {
        $this->end = $maxSeconds === null ? INF : self::now() + $maxSeconds;
    }

    /**
     * Makes a request.
     *
     * @template T
     * @template F
     * @param \Closure(LeadIntakeClient): T $request
     * @param F $failed the result when the service fails to process this one request (500)
     * @return T|F|null null: there is no such lead, or no such page
     *
     * @throws Stopped when the service fails, or the time is over
     * @throws OutboxException when the key may not read leads
     */
    public function read(\Closure $request, mixed $failed = null): mixed
    {
        while (true) {
            if ($this->made >= self::MIN_REQUESTS) {
                $this->pause(self::secondsToWait($this->client->quota()), 'half of the quota is left to the website');
            }
            if (self::now() > $this->end) {
                throw new Stopped('the time is over');
            }
            $this->made++;
            try {
                return $request($this->client);
            } catch (LeadIntakeException $error) {
                if ($error instanceof ProblemException && in_array($error->problemCode, self::NOT_THERE_CODES, true)) {
                    return null;
                }
                if ($error instanceof ProblemException && $error->problemCode === 'internal_error' && $failed !== null) {
                    return $failed;
                }
                $this->waitAfter($error);
            }
        }
    }

    /** Waits until the request may be made again; throws if it may not. */
    private function waitAfter(LeadIntakeException $error): void
    {
        if ($error instanceof ProblemException && $error->problemCode === 'integration_scope_forbidden') {
            throw new OutboxException('the API key may not read leads: to compare, it needs the scope leads.read');
        }
        $reason = Reason::of($error);
        if ($error->retryAfterSeconds === null) {
            throw new Stopped($reason);
        }
        $this->pause($error->retryAfterSeconds, $reason);
    }

    private function pause(int $seconds, string $reason): void
    {
        if ($seconds === 0) {
            return;
        }
        $until = self::now() + $seconds;
        if ($seconds > self::MAX_PAUSE_SECONDS || $until > $this->end) {
            throw new Stopped($reason);
        }
        ($this->beforeWait)();
        // A handled signal ends usleep early.
        while (($left = $until - self::now()) > 0) {
            usleep((int) ceil($left * 1_000_000));
        }
    }

    private static function secondsToWait(?Quota $quota): int
    {
        return $quota === null || $quota->remaining * 2 > $quota->limit ? 0 : max(1, $quota->endsInSeconds);
    }

    /** Seconds of the monotonic clock. */
    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
