<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

/** 409: the contact has an open lead, under another key or from elsewhere. A normal outcome: the studio knows it. */
final class LeadAlreadyOpenException extends ProblemException
{
    /** @param ?string $existingLeadId the id of that lead; null when the API key may not read leads */
    public function __construct(public readonly ?string $existingLeadId, mixed ...$problem)
    {
        parent::__construct(...$problem);
    }
}
