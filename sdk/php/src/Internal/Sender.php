<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\AttemptReport;
use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Quota;
use LeadIntake\Transport\Response;
use LeadIntake\Transport\Transport;
use LeadIntake\Transport\TransportException;
use LeadIntake\Written;
use Psr\Log\LoggerInterface;

/**
 * Sends a request, and retries while a retry may succeed and time is left.
 *
 * @internal
 */
final class Sender
{
    /** The first and the maximum backoff. */
    private const FIRST_BACK_OFF_SECONDS = 0.5;
    private const MAX_BACK_OFF_SECONDS = 30.0;

    /** The minimum time for another attempt. With less, it would more likely time out and leave the outcome unknown. */
    private const MIN_ATTEMPT_SECONDS = 1.0;

    /** The quota as the latest response described it. */
    public ?Quota $quota = null;

    /**
     * @param float $deadlineSeconds the time limit of a request over all attempts
     * @param float $attemptTimeoutSeconds the time limit of one attempt
     */
    public function __construct(
        private readonly Transport $transport,
        private readonly float $deadlineSeconds,
        private readonly float $attemptTimeoutSeconds,
        private readonly ?LoggerInterface $logger,
        private readonly ?\Closure $onAttempt,
    ) {
    }

    /**
     * @template T
     * @param Call<T> $call
     * @return T
     *
     * @throws LeadIntakeException $written reports whether the lead may have been written
     */
    public function send(#[\SensitiveParameter] Call $call): mixed
    {
        $end = self::now() + $this->deadlineSeconds;
        $isOpen = false;
        for ($attempts = 1;; $attempts++) {
            $timeout = min($this->attemptTimeoutSeconds, max(0.001, $end - self::now()));
            [$outcome, $response] = $this->attempt($call, $attempts, $timeout);
            if (!$outcome instanceof Failure) {
                $this->report($attempts, null, $response, null);
                return $outcome;
            }
            $isOpen = ($isOpen && !$outcome->settlesOutcome()) || $outcome->leavesOutcomeOpen();
            $waitSeconds = self::retryDelaySeconds($attempts, $outcome->retryAfterSeconds() ?? 0);
            $isInTime = self::now() + $waitSeconds + self::MIN_ATTEMPT_SECONDS < $end;
            $isLast = !$outcome->isWorthRepeating() || !$isInTime;
            $this->report($attempts, $outcome->name(), $response, $isLast ? null : $waitSeconds);
            if ($isLast) {
                $written = $call->idempotencyKey !== null && $isOpen ? Written::Unknown : Written::No;
                throw $outcome->toException($written, $call->idempotencyKey, $attempts);
            }
            $this->logger?->info('Lead Intake: attempt {attempt} failed ({failure}), the next one in {seconds} s', [
                'attempt' => $attempts,
                'failure' => $outcome->name(),
                'seconds' => round($waitSeconds, 1),
            ]);
            self::sleep($waitSeconds);
        }
    }

    /**
     * @template T
     * @param Call<T> $call
     * @return array{T|Failure, ?Response}
     */
    private function attempt(#[\SensitiveParameter] Call $call, int $attempts, float $timeoutSeconds): array
    {
        try {
            $response = $this->transport->send($call->method, $call->url, $call->headers, $call->body, $timeoutSeconds);
        } catch (TransportException $cause) {
            return [new Silence($cause), null];
        }
        $this->quota = Quota::in($response);
        return [$call->outcomeOf($response, $attempts), $response];
    }

    private function report(
        int $attempt,
        ?string $failure,
        #[\SensitiveParameter] ?Response $response,
        ?float $retryInSeconds,
    ): void {
        if ($this->onAttempt !== null) {
            $remaining = preg_match('/; *r=(\d+)/', $response?->header('ratelimit') ?? '', $found) ? (int) $found[1] : null;
            $requestId = $response?->header('x-request-id') ?: null;
            ($this->onAttempt)(new AttemptReport($attempt, $failure, $requestId, $remaining, $retryInSeconds));
        }
    }

    /** Exponential backoff with up to half of it as jitter; never less than Retry-After. */
    private static function retryDelaySeconds(int $attempts, int $retryAfterSeconds): float
    {
        $half = min(self::MAX_BACK_OFF_SECONDS, self::FIRST_BACK_OFF_SECONDS * 2 ** ($attempts - 1)) / 2;
        return max($half, $retryAfterSeconds) + mt_rand() / mt_getrandmax() * $half;
    }

    /** Sleeps for the whole time: a handled signal ends usleep early. */
    private static function sleep(float $seconds): void
    {
        $end = self::now() + $seconds;
        while (($left = $end - self::now()) > 0) {
            usleep((int) ceil($left * 1_000_000));
        }
    }

    /** Seconds of the monotonic clock. */
    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
