<?php

declare(strict_types=1);

namespace LeadIntake\Transport;

/** A request without a response. */
final class TransportException extends \RuntimeException
{
    /**
     * @param string $message the cause, without address or data, since it may be stored for people to read; the previous
     *     exception has the details
     * @param bool $mayHaveArrived false only when the request was certainly not sent because the connection failed
     * @param string $fault the finding of a check: `name_unknown`, `connection_refused`, `tls_failed`, `timed_out` or `no_answer`
     */
    public function __construct(
        string $message,
        public readonly bool $mayHaveArrived = true,
        ?\Throwable $previous = null,
        public readonly string $fault = 'no_answer',
    ) {
        parent::__construct($message, previous: $previous);
    }

    /** @internal */
    public static function tooLong(): self
    {
        return new self('the answer is longer than 4 MiB');
    }
}
