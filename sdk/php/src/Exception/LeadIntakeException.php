<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

use LeadIntake\Written;

/** A request that failed: a ProblemException or a NoAnswerException. */
abstract class LeadIntakeException extends \RuntimeException
{
    /**
     * @param Written $written when it is unknown, create the lead again with the same data and this idempotency key, at
     *     any later time, and the answer is the one lead
     * @param ?string $idempotencyKey the key that the creation was sent with; null for requests that read
     * @param int $attempts how often the request was sent
     */
    public function __construct(
        string $message,
        public readonly Written $written,
        public readonly ?string $idempotencyKey,
        public readonly int $attempts,
        ?\Throwable $previous = null,
    ) {
        $resume = "; whether the lead was written is unknown: repeat with the idempotency key $idempotencyKey";
        parent::__construct(
            $written === Written::Unknown ? rtrim($message, '.') . $resume : $message,
            previous: $previous,
        );
    }
}
