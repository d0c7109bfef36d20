<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

/**
 * Ends a comparison early.
 *
 * @internal
 */
final class Stopped extends \Exception
{
}
