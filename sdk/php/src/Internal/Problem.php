<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\Exception\IdempotencyConflictException;
use LeadIntake\Exception\LeadAlreadyOpenException;
use LeadIntake\Exception\ProblemException;
use LeadIntake\ProblemCode;
use LeadIntake\Transport\Response;
use LeadIntake\Written;

/**
 * A problem returned by the service.
 *
 * @internal
 */
final class Problem implements Failure
{
    /** @param array<string, list<string>> $fields */
    private function __construct(
        #[\SensitiveParameter] public readonly Response $response,
        public readonly string $code,
        private readonly string $type,
        private readonly string $title,
        private readonly ?string $detail,
        public readonly array $fields,
        private readonly string $requestId,
    ) {
    }

    /**
     * @param array<mixed> $body
     *
     * @throws \TypeError|\UnexpectedValueException when it is not in the service's form
     */
    public static function of(#[\SensitiveParameter] array $body, #[\SensitiveParameter] Response $response): self
    {
        $code = $body['code'] ?? null;
        if (!in_array($code, Outcomes::PROBLEM_CODES, true)) {
            throw new \UnexpectedValueException('a code of something else');
        }
        return new self(
            $response,
            $code,
            self::text($body, 'type') ?? 'about:blank',
            self::text($body, 'title') ?? $code,
            self::text($body, 'detail'),
            self::fields($body['fields'] ?? []),
            self::text($body, 'requestId') ?? '',
        );
    }

    public function name(): string
    {
        return "{$this->response->status} $this->code";
    }

    public function retryAfterSeconds(): ?int
    {
        return Retries::afterSeconds($this->response);
    }

    public function leavesOutcomeOpen(): bool
    {
        return $this->response->status >= Outcomes::FAILING_FROM_STATUS
            && !in_array($this->code, Outcomes::CODES_WRITING_NOTHING, true);
    }

    public function settlesOutcome(): bool
    {
        return in_array($this->code, Outcomes::SETTLING_CODES, true)
            || (in_array($this->code, Outcomes::SETTLING_CODES_WITH_FIELDS, true) && self::areOfData($this->fields));
    }

    /**
     * Whether a refusal names faulty fields, all of them in the lead's data.
     *
     * @param array<string, list<string>> $fields
     */
    public static function areOfData(array $fields): bool
    {
        return $fields !== [] && array_intersect_key($fields, array_flip(Outcomes::FIELDS_NOT_OF_DATA)) === [];
    }

    public function isWorthRepeating(): bool
    {
        return Retries::mayHelpAfter($this->response->status);
    }

    public function toException(Written $written, ?string $idempotencyKey, int $attempts): ProblemException
    {
        $problem = [
            'type' => $this->type,
            'title' => $this->title,
            'status' => $this->response->status,
            'problemCode' => $this->code,
            'detail' => $this->detail,
            'fields' => $this->fields,
            'requestId' => $this->requestId,
            'retryAfterSeconds' => $this->retryAfterSeconds(),
            'written' => $written,
            'idempotencyKey' => $idempotencyKey,
            'attempts' => $attempts,
        ];
        return match ($this->code) {
            ProblemCode::IntegrationLeadAlreadyOpen->value => new LeadAlreadyOpenException($this->existingLeadId(), ...$problem),
            ProblemCode::IntegrationIdempotencyConflict->value => new IdempotencyConflictException(...$problem),
            default => new ProblemException(...$problem),
        };
    }

    /** @param array<mixed> $body */
    private static function text(#[\SensitiveParameter] array $body, string $name): ?string
    {
        return is_string($body[$name] ?? null) ? $body[$name] : null;
    }

    /** @return array<string, list<string>> the entries that have this shape */
    private static function fields(mixed $fields): array
    {
        $lists = array_filter(is_array($fields) ? $fields : [], is_array(...));
        return array_map(static fn (array $list): array => array_values(array_filter($list, is_string(...))), $lists);
    }

    /** Returns the lead id from `Link: <…>; rel="existing-lead"`. */
    private function existingLeadId(): ?string
    {
        $isLinked = preg_match('~/([^/>]+)>; *rel="existing-lead"~', $this->response->header('link'), $found);
        return $isLinked ? rawurldecode($found[1]) : null;
    }
}
