<?php

declare(strict_types=1);

namespace LeadIntake;

/** The result of a check. */
final class CheckReport
{
    /**
     * @param bool $canCreate whether address and key are known to be right for creating leads; false: they are wrong, or it is not
     *     known: the findings say which
     * @param bool $canRead whether they are known to be right for reading leads; false as for creating them
     * @param list<CheckFinding> $findings one of each part: address, key, leads.create, leads.read, clock
     */
    public function __construct(
        public readonly bool $canCreate,
        public readonly bool $canRead,
        public readonly array $findings,
    ) {
    }
}
