<?php

declare(strict_types=1);

namespace LeadIntake\Exception;

use LeadIntake\Written;

/** The service refused the request or failed, and retries did not or cannot help. Branch on $problemCode. */
class ProblemException extends LeadIntakeException
{
    /**
     * @param string $type the URL of the page that documents the code
     * @param string $problemCode a value of ProblemCode
     * @param ?string $detail a human-readable explanation of this occurrence
     * @param array<string, list<string>> $fields validation messages by header, parameter, or path into the body such as
     *     `contact.value`
     * @param string $requestId the id of the last attempt in the service's logs
     */
    public function __construct(
        public readonly string $type,
        public readonly string $title,
        public readonly int $status,
        public readonly string $problemCode,
        public readonly ?string $detail,
        public readonly array $fields,
        public readonly string $requestId,
        ?int $retryAfterSeconds,
        Written $written,
        ?string $idempotencyKey,
        int $attempts,
    ) {
        $faulty = $fields === [] ? '' : ' (' . implode(', ', array_keys($fields)) . ')';
        $message = "$status $problemCode$faulty: " . ($detail ?? $title);
        parent::__construct($message, $written, $idempotencyKey, $attempts, $retryAfterSeconds);
    }
}
