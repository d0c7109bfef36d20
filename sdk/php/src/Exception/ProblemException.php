<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

use LeadIntake\Written;

/** The service has answered with a problem, which a retry has not helped, or cannot help. Decide by its code. */
class ProblemException extends LeadIntakeException
{
    /**
     * @param string $type the address of the page that explains the code
     * @param string $problemCode a value of ProblemCode; the service may come to have others
     * @param ?string $detail what happened this time, for people
     * @param array<string, list<string>> $fields what is wrong, by header, parameter, or path into the body such as
     *     `contact.value`
     * @param string $requestId the name of the last attempt in the logs of the service
     * @param ?int $retryAfterSeconds how long the service asks to wait before the next attempt
     */
    public function __construct(
        public readonly string $type,
        public readonly string $title,
        public readonly int $status,
        public readonly string $problemCode,
        public readonly ?string $detail,
        public readonly array $fields,
        public readonly string $requestId,
        public readonly ?int $retryAfterSeconds,
        Written $written,
        ?string $idempotencyKey,
        int $attempts,
    ) {
        parent::__construct($detail ?? $title, $written, $idempotencyKey, $attempts);
    }
}
