<?php

declare(strict_types=1);

namespace LeadIntake\Transport;

/** A request that has no answer. */
final class TransportException extends \RuntimeException
{
    /**
     * @param string $message says why, and neither address nor data: it may be stored for people to read; the previous
     *     exception has the rest
     * @param bool $mayHaveArrived false only where the request surely never left, as nobody could be connected to
     */
    public function __construct(
        string $message,
        public readonly bool $mayHaveArrived = true,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, previous: $previous);
    }

    /** @internal */
    public static function tooLong(): self
    {
        return new self('the answer is longer than 4 MiB');
    }
}
