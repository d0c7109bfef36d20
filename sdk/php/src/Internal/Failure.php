<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Written;

/**
 * A failed attempt.
 *
 * @internal
 */
interface Failure
{
    /** A short description for the log. */
    public function name(): string;

    /** The Retry-After of the response. */
    public function retryAfterSeconds(): ?int;

    /** Whether this attempt alone may have written the lead without reporting it. */
    public function leavesOutcomeOpen(): bool;

    /**
     * Whether it also settles earlier attempts: the service has looked up the idempotency key, or the data would have been
     * refused before as well. Other refusals (a revoked key, a quota, a request spoiled on the way) say nothing about them.
     */
    public function settlesOutcome(): bool;

    /** Whether the same request may succeed later. Every request is safe to repeat: a creation has its idempotency key. */
    public function isWorthRepeating(): bool;

    public function toException(Written $written, ?string $idempotencyKey, int $attempts): LeadIntakeException;
}
