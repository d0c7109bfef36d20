<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

/** The service has given no answer that can be understood. The previous exception says why: the network, or the time. */
final class NoAnswerException extends LeadIntakeException
{
}
