<?php

// The driver of this client for the conformance suite (sdk/conformance): one request per line of stdin, one report per line of stdout.

declare(strict_types=1);

use LeadIntake\Contact;
use LeadIntake\Exception\IdempotencyConflictException;
use LeadIntake\Exception\LeadAlreadyOpenException;
use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Exception\ProblemException;
use LeadIntake\Lead;
use LeadIntake\LeadCapture;
use LeadIntake\LeadIntakeClient;

spl_autoload_register(static function (string $class): void {
    require __DIR__ . '/src/' . str_replace('\\', '/', substr($class, strlen('LeadIntake\\'))) . '.php';
});

while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true, flags: JSON_THROW_ON_ERROR);
    $report = ['id' => $request['id']] + reportOn($request);
    fwrite(STDOUT, json_encode($report, JSON_THROW_ON_ERROR) . "\n");
}

/** @param array<string, mixed> $request */
function reportOn(array $request): array
{
    if ($request['call'] === 'check') {
        $seconds = $request['options']['attemptTimeoutMs'] / 1000;
        $allowHttp = $request['allowHttp'] ?? false;
        $report = LeadIntakeClient::check($request['baseUrl'], $request['apiKey'], $seconds, allowHttp: $allowHttp);
        return ['result' => $report];
    }
    if ($request['isClosed'] ?? false) {
        return ['unsupported' => 'a client cannot be closed'];
    }
    try {
        $leads = new LeadIntakeClient(
            baseUrl: $request['baseUrl'],
            apiKey: $request['apiKey'],
            deadlineSeconds: $request['options']['deadlineMs'] / 1000,
            attemptTimeoutSeconds: $request['options']['attemptTimeoutMs'] / 1000,
            // Fails. This must not change the result of a call.
            onAttempt: static fn (): never => throw new DomainException('the listener has failed'),
        );
    } catch (InvalidArgumentException $error) {
        return ['refused' => $error->getMessage()];
    }
    try {
        return ['result' => resultOf($leads, $request)];
    } catch (LeadIntakeException $error) {
        return ['error' => errorOf($error)];
    } catch (InvalidArgumentException | TypeError $error) {
        return ['refused' => $error->getMessage()];
    }
}

/** @param array<string, mixed> $request */
function resultOf(LeadIntakeClient $leads, array $request): array
{
    $own = [];
    if (isset($request['callDeadlineMs'])) {
        $own['deadlineSeconds'] = $request['callDeadlineMs'] / 1000;
    }
    if (isset($request['cancelAfterMs'])) {
        $at = hrtime(true) + $request['cancelAfterMs'] * 1_000_000;
        $own['isCancelled'] = static fn (): bool => hrtime(true) >= $at;
    }
    switch ($request['call']) {
        case 'createLead':
            $created = $leads->createLead(captureOf($request), $request['idempotencyKey'] ?? null, ...$own);
            return [
                'lead' => publicLead($created->lead),
                'replayed' => $created->replayed,
                'idempotencyKey' => $created->idempotencyKey,
            ];
        case 'getLead':
            return ['lead' => publicLead($leads->getLead($request['leadId'], ...$own))];
        case 'listLeads':
            $page = $leads->listLeads($request['limit'] ?? null, $request['cursor'] ?? null, ...$own);
            return ['leads' => array_map(publicLead(...), $page->leads), 'nextCursor' => $page->nextCursor];
        case 'allLeads':
            $all = iterator_to_array($leads->allLeads($request['limit'] ?? null, ...$own), false);
            return ['leads' => array_map(publicLead(...), $all)];
    }
    throw new LogicException("no call is named $request[call]");
}

/** @param array<string, mixed> $request */
function captureOf(array $request): mixed
{
    $capture = $request['capture'];
    ['type' => $type, 'value' => $value] = $capture['contact'];
    $contact = $type === 'email' ? Contact::email($value) : Contact::phone($value);
    return match ($request['captureAs'] ?? null) {
        'nothing' => null,
        'text' => 'Grace',
        'list' => [],
        'not-a-number' => ['note' => NAN] + $capture,
        'infinite' => ['note' => INF] + $capture,
        null => new LeadCapture(...['contact' => $contact] + $capture),
    };
}

function publicLead(Lead $lead): array
{
    $time = static fn (?DateTimeImmutable $at): ?string => $at?->format((int) $at->format('v') ? 'Y-m-d\TH:i:s.v\Z' : 'Y-m-d\TH:i:s\Z');
    $parts = ['createdAt' => $time($lead->createdAt), 'updatedAt' => $time($lead->updatedAt)] + get_object_vars($lead);
    // An empty string means that the response did not have the field.
    return array_map(static fn (?string $part): ?string => $part === '' ? null : $part, $parts);
}

function errorOf(LeadIntakeException $error): array
{
    $kind = match (true) {
        $error instanceof LeadAlreadyOpenException => 'lead-already-open',
        $error instanceof IdempotencyConflictException => 'idempotency-conflict',
        $error instanceof ProblemException => 'problem',
        default => 'no-answer',
    };
    $parts = [
        'kind' => $kind,
        'written' => $error->written,
        'attempts' => $error->attempts,
        'idempotencyKey' => $error->idempotencyKey,
    ];
    if ($error instanceof ProblemException) {
        $parts += [
            'code' => $error->problemCode,
            'status' => $error->status,
            'requestId' => $error->requestId,
            'retryAfterSeconds' => $error->retryAfterSeconds,
            'fields' => $error->fields,
        ];
    }
    if ($kind === 'no-answer') {
        $parts['message'] = $error->getMessage();
    }
    return $error instanceof LeadAlreadyOpenException ? $parts + ['existingLeadId' => $error->existingLeadId] : $parts;
}
