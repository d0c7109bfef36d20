<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\AttemptReport;
use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Exception\NoAnswerException;
use LeadIntake\Quota;
use LeadIntake\Transport\CancellableTransport;
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

    /** The quota from the latest response; null before the first one, and if it lacked the headers. */
    public ?Quota $quota = null;

    /** The interval at which a wait between attempts checks for cancellation. */
    private const POLL_SECONDS = 0.1;

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
        self::requireLimit('deadlineSeconds', $deadlineSeconds);
        self::requireLimit('attemptTimeoutSeconds', $attemptTimeoutSeconds);
    }

    private static function requireLimit(string $name, float $seconds): void
    {
        if (!($seconds > 0) || is_infinite($seconds)) {
            throw new \InvalidArgumentException("$name must be a positive number of seconds");
        }
    }

    /**
     * @template T
     * @param Call<T> $call
     * @param ?float $deadlineSeconds of this call; null: that of the client
     * @param ?\Closure(): bool $isCancelled
     * @return T
     *
     * @throws LeadIntakeException $written reports whether the lead may have been written
     * @throws \InvalidArgumentException when the deadline is not one
     */
    public function send(#[\SensitiveParameter] Call $call, ?float $deadlineSeconds = null, ?\Closure $isCancelled = null): mixed
    {
        $deadlineSeconds ??= $this->deadlineSeconds;
        self::requireLimit('deadlineSeconds', $deadlineSeconds);
        $end = self::now() + $deadlineSeconds;
        $isOpen = false;
        for ($attempts = 1;; $attempts++) {
            if ($isCancelled !== null && $isCancelled()) {
                throw self::cancelled($call, $isOpen, $attempts - 1);
            }
            $timeout = min($this->attemptTimeoutSeconds, max(0.001, $end - self::now()));
            [$outcome, $response] = $this->attempt($call, $attempts, $timeout, $isCancelled);
            if (!$outcome instanceof Failure) {
                $this->report($attempts, null, $response, null);
                return $outcome;
            }
            $isOpen = ($isOpen && !$outcome->settlesOutcome()) || $outcome->leavesOutcomeOpen();
            $waitSeconds = self::retryDelaySeconds($attempts, $outcome->retryAfterSeconds() ?? 0);
            $isInTime = self::now() + $waitSeconds + self::MIN_ATTEMPT_SECONDS < $end;
            $isEnded = $isCancelled !== null && $isCancelled();
            $isLast = $isEnded || !$outcome->isWorthRepeating() || !$isInTime;
            $this->report($attempts, $outcome->name(), $response, $isLast ? null : $waitSeconds);
            if ($isEnded) {
                throw self::cancelled($call, $isOpen, $attempts);
            }
            if ($isLast) {
                throw $outcome->toException(self::written($call, $isOpen), $call->idempotencyKey, $attempts);
            }
            $this->logger?->info('Lead Intake: attempt {attempt} failed ({failure}), the next one in {seconds} s', [
                'attempt' => $attempts,
                'failure' => $outcome->name(),
                'seconds' => round($waitSeconds, 1),
            ]);
            self::sleep($waitSeconds, $isCancelled);
        }
    }

    /**
     * @template T
     * @param Call<T> $call
     * @return array{T|Failure, ?Response}
     */
    private function attempt(
        #[\SensitiveParameter] Call $call,
        int $attempts,
        float $timeoutSeconds,
        ?\Closure $isCancelled,
    ): array {
        $request = [$call->method, $call->url, $call->headers, $call->body, $timeoutSeconds];
        try {
            $response = Encoding::decoded($isCancelled !== null && $this->transport instanceof CancellableTransport
                ? $this->transport->sendUnless($isCancelled, ...$request)
                : $this->transport->send(...$request));
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
            try {
                ($this->onAttempt)(new AttemptReport($attempt, $failure, $requestId, $remaining, $retryInSeconds));
            } catch (\Throwable $error) {
                // A listener's failure does not fail the request, which may have written the lead. A signal handler's exception ends it.
                if (Signals::haveThrown($error)) {
                    throw $error;
                }
                error_log('Lead Intake: onAttempt has thrown ' . $error::class . ": {$error->getMessage()}");
            }
        }
    }

    /** Exponential backoff with up to half of it as jitter; never less than Retry-After. */
    private static function retryDelaySeconds(int $attempts, int $retryAfterSeconds): float
    {
        $half = min(self::MAX_BACK_OFF_SECONDS, self::FIRST_BACK_OFF_SECONDS * 2 ** ($attempts - 1)) / 2;
        return max($half, $retryAfterSeconds) + mt_rand() / mt_getrandmax() * $half;
    }

    /** Sleeps for the whole time unless the call is cancelled: a handled signal ends usleep early. */
    private static function sleep(float $seconds, ?\Closure $isCancelled): void
    {
        $end = self::now() + $seconds;
        while (($left = $end - self::now()) > 0 && !($isCancelled !== null && $isCancelled())) {
            usleep((int) ceil(min($left, $isCancelled === null ? $left : self::POLL_SECONDS) * 1_000_000));
        }
    }

    private static function cancelled(#[\SensitiveParameter] Call $call, bool $isOpen, int $attempts): NoAnswerException
    {
        return new NoAnswerException('The call was cancelled', self::written($call, $isOpen), $call->idempotencyKey, $attempts);
    }

    private static function written(#[\SensitiveParameter] Call $call, bool $isOpen): Written
    {
        return $call->idempotencyKey !== null && $isOpen ? Written::Unknown : Written::No;
    }

    /** Seconds of the monotonic clock. */
    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
