<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\Exception\NoAnswerException;
use LeadIntake\Transport\Response;
use LeadIntake\Transport\TransportException;
use LeadIntake\Written;

/**
 * No response from the service: none at all, or one from an intermediary such as a proxy.
 *
 * @internal
 */
final class Silence implements Failure
{
    private const UNREAD = 'in an encoding that the client cannot read: ';

    /** @param ?Response $response the intermediary's response */
    public function __construct(
        public readonly TransportException $cause,
        #[\SensitiveParameter] public readonly ?Response $response = null,
    ) {
    }

    public static function of(#[\SensitiveParameter] Response $response): self
    {
        return new self(new TransportException("the answer $response->status is not from the service"), $response);
    }

    public static function inEncoding(#[\SensitiveParameter] Response $response): self
    {
        $reason = self::UNREAD . Encoding::of($response);
        return new self(new TransportException($reason), $response);
    }

    public function name(): string
    {
        return $this->response === null ? 'no answer' : self::why($this->cause, $this->response->status);
    }

    /**
     * Returns why the service has not answered, without addresses and data: `connection refused (…)`, or `403, not of the
     * service` when something else has answered with a status. The same words in all languages; the rest is the transport's.
     */
    public static function why(?\Throwable $cause, ?int $status): string
    {
        if ($status !== null) {
            $message = $cause?->getMessage() ?? '';
            return "$status, " . (str_starts_with($message, self::UNREAD) ? $message : 'not of the service');
        }
        $words = match ($cause instanceof TransportException ? $cause->fault : null) {
            'timed_out' => 'timed out',
            'name_unknown' => 'name unknown',
            'connection_refused' => 'connection refused',
            'tls_failed' => 'TLS failed',
            default => 'connection failed',
        };
        return $words === 'timed out' || ($cause?->getMessage() ?? '') === '' ? $words : "$words ({$cause->getMessage()})";
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
            'The service has not answered: ' . self::why($this->cause, $this->response?->status),
            $written,
            $idempotencyKey,
            $attempts,
            $this->response?->status,
            $this->retryAfterSeconds(),
            $this->cause,
        );
    }
}
