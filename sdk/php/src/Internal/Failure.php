<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Written;

/**
 * An attempt that has not given what was asked for.
 *
 * @internal
 */
interface Failure
{
    /** What it was, in a few words for the log. */
    public function name(): string;

    /** How long the answer asks to wait. */
    public function retryAfterSeconds(): ?int;

    /** Whether the attempt, taken alone, may have written something without saying so. */
    public function leavesOutcomeOpen(): bool;

    /**
     * Whether it also settles what earlier attempts have left open: the service has looked at the idempotency key, or at
     * data that would have been refused before, too. Others (a revoked key, a quota) say nothing of it.
     */
    public function settlesOutcome(): bool;

    /** Whether the same request may succeed later. Every request can be repeated: a creation has its key. */
    public function isWorthRepeating(): bool;

    public function toException(Written $written, ?string $idempotencyKey, int $attempts): LeadIntakeException;
}
