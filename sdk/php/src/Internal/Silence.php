<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\Exception\NoAnswerException;
use LeadIntake\Transport\Response;
use LeadIntake\Transport\TransportException;
use LeadIntake\Written;

/**
 * No response of the service: none at all, or one of an intermediary such as a proxy.
 *
 * @internal
 */
final class Silence implements Failure
{
    /** @param ?Response $response the intermediary's response */
    public function __construct(
        public readonly TransportException $cause,
        #[\SensitiveParameter] public readonly ?Response $response = null,
    ) {
    }

    public static function of(#[\SensitiveParameter] Response $response): self
    {
        return new self(new TransportException("the answer $response->status is not one of the service"), $response);
    }

    public function name(): string
    {
        return $this->response === null ? 'no answer' : "{$this->response->status}, not of the service";
    }

    public function retryAfterSeconds(): ?int
    {
        return $this->response === null ? null : Retries::afterSeconds($this->response);
    }

    public function leavesOutcomeOpen(): bool
    {
        return $this->cause->mayHaveArrived;
    }

    public function settlesOutcome(): bool
    {
        return false;
    }

    public function isWorthRepeating(): bool
    {
        // A proxy may temporarily respond with 200 in place of the service.
        return $this->response === null
            || $this->response->isSuccess()
            || Retries::mayHelpAfter($this->response->status);
    }

    public function toException(Written $written, ?string $idempotencyKey, int $attempts): NoAnswerException
    {
        return new NoAnswerException(
            'The service has not answered',
            $written,
            $idempotencyKey,
            $attempts,
            $this->response?->status,
            $this->retryAfterSeconds(),
            $this->cause,
        );
    }
}
