<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** The state of the entries does not permit the operation, or a listener, sending or storing an outcome failed. */
final class OutboxException extends \RuntimeException
{
}
