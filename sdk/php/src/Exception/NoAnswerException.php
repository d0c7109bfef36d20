<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

use LeadIntake\Written;

/** The service sent no valid response: the network failed, the deadline passed, or the caller cancelled. See getPrevious(). */
final class NoAnswerException extends LeadIntakeException
{
    /** @param ?int $status the status of an intermediary's response, such as a proxy's; null when there was none */
    public function __construct(
        string $message,
        Written $written,
        ?string $idempotencyKey,
        int $attempts,
        public readonly ?int $status = null,
        ?int $retryAfterSeconds = null,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, $written, $idempotencyKey, $attempts, $retryAfterSeconds, $previous);
    }
}
