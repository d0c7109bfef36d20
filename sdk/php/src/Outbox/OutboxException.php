<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** What was asked of an outbox cannot be done as its entries stand, or a listener, or what sends and notes, has failed. */
final class OutboxException extends \RuntimeException
{
}
