<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

/** No valid response of the service was received: the network failed or the deadline passed. See getPrevious(). */
final class NoAnswerException extends LeadIntakeException
{
}
