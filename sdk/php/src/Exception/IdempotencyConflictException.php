<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

/** 409: the idempotency key has already created a lead, with other data. New data needs a new key. */
final class IdempotencyConflictException extends ProblemException
{
}
