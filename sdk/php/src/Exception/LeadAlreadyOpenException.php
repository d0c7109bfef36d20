<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

/** 409: the contact already has an open lead, created with another key or elsewhere. A normal outcome: the studio knows the person. */
final class LeadAlreadyOpenException extends ProblemException
{
    /** @param ?string $existingLeadId the id of the open lead; null when the API key may not read leads */
    public function __construct(public readonly ?string $existingLeadId, mixed ...$problem)
    {
        parent::__construct(...$problem);
    }
}
