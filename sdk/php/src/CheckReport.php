<?php

declare(strict_types=1);

namespace LeadIntake;

/** The result of a check. */
final class CheckReport
{
    /**
     * @param bool $canCreate whether address and key are known to work for creating leads; when false, the findings say why
     * @param bool $canRead whether address and key are known to work for reading leads
     * @param list<CheckFinding> $findings one for each part: address, key, leads.create, leads.read, clock
     */
    public function __construct(
        public readonly bool $canCreate,
        public readonly bool $canRead,
        public readonly array $findings,
    ) {
    }
}
