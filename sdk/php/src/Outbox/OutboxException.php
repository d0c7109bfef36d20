<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** The state of the table does not permit the operation, or a listener or sending a lead has failed; see the message. */
final class OutboxException extends \RuntimeException
{
}
