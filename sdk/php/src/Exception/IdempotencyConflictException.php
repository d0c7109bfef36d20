<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

/** 409: the idempotency key was already used to create a lead with different data. New data needs a new key. */
final class IdempotencyConflictException extends ProblemException
{
}
