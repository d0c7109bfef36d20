<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

use LeadIntake\Written;

/** The base class of request errors: a ProblemException or a NoAnswerException. */
abstract class LeadIntakeException extends \RuntimeException
{
    /**
     * @param Written $written when unknown, repeat the creation at any later time with the same data and this idempotency
     *     key to get the one lead
     * @param ?string $idempotencyKey the idempotency key of the creation; null for reads
     * @param int $attempts the number of times the request was sent
     * @param ?int $retryAfterSeconds the Retry-After of the last response, even if an intermediary sent it
     */
    public function __construct(
        string $message,
        public readonly Written $written,
        public readonly ?string $idempotencyKey,
        public readonly int $attempts,
        public readonly ?int $retryAfterSeconds = null,
        ?\Throwable $previous = null,
    ) {
        $resume = "; whether the lead was written is unknown: repeat with the idempotency key $idempotencyKey";
        parent::__construct(
            $written === Written::Unknown ? rtrim($message, '.') . $resume : $message,
            previous: $previous,
        );
    }
}
