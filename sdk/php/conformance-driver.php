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
    $asked = json_decode($line, true, flags: JSON_THROW_ON_ERROR);
    $report = ['id' => $asked['id']] + reportOn($asked);
    fwrite(STDOUT, json_encode($report, JSON_THROW_ON_ERROR) . "\n");
}

/** @param array<string, mixed> $asked */
function reportOn(array $asked): array
{
    if (isset($asked['cancelAfterMs'])) {
        return ['unsupported' => 'a call cannot be cancelled'];
    }
    $leads = new LeadIntakeClient(
        baseUrl: $asked['baseUrl'],
        apiKey: $asked['apiKey'],
        deadlineSeconds: $asked['options']['deadlineMs'] / 1000,
        attemptTimeoutSeconds: $asked['options']['attemptTimeoutMs'] / 1000,
    );
    try {
        return ['result' => resultOf($leads, $asked)];
    } catch (LeadIntakeException $error) {
        return ['error' => errorOf($error)];
    }
}

/** @param array<string, mixed> $asked */
function resultOf(LeadIntakeClient $leads, array $asked): array
{
    switch ($asked['call']) {
        case 'createLead':
            $created = $leads->createLead(captureOf($asked['capture']), $asked['idempotencyKey'] ?? null);
            return [
                'lead' => publicLead($created->lead),
                'replayed' => $created->replayed,
                'idempotencyKey' => $created->idempotencyKey,
            ];
        case 'getLead':
            return ['lead' => publicLead($leads->getLead($asked['leadId']))];
        case 'listLeads':
            $page = $leads->listLeads($asked['limit'] ?? null, $asked['cursor'] ?? null);
            return ['leads' => array_map(publicLead(...), $page->leads), 'nextCursor' => $page->nextCursor];
        case 'allLeads':
            $all = iterator_to_array($leads->allLeads($asked['limit'] ?? null), false);
            return ['leads' => array_map(publicLead(...), $all)];
    }
    throw new LogicException("no call is named $asked[call]");
}

/** @param array<string, mixed> $capture */
function captureOf(array $capture): LeadCapture
{
    ['type' => $type, 'value' => $value] = $capture['contact'];
    $contact = $type === 'email' ? Contact::email($value) : Contact::phone($value);
    return new LeadCapture($capture['displayName'], $contact, $capture['sourceId'] ?? null, $capture['note'] ?? null);
}

function publicLead(Lead $lead): array
{
    $time = static fn (?DateTimeImmutable $at): ?string => $at?->format((int) $at->format('v') ? 'Y-m-d\TH:i:s.v\Z' : 'Y-m-d\TH:i:s\Z');
    $told = ['createdAt' => $time($lead->createdAt), 'updatedAt' => $time($lead->updatedAt)] + get_object_vars($lead);
    // An empty string means that the response did not have the field.
    return array_map(static fn (?string $part): ?string => $part === '' ? null : $part, $told);
}

function errorOf(LeadIntakeException $error): array
{
    $kind = match (true) {
        $error instanceof LeadAlreadyOpenException => 'lead-already-open',
        $error instanceof IdempotencyConflictException => 'idempotency-conflict',
        $error instanceof ProblemException => 'problem',
        default => 'no-answer',
    };
    $told = [
        'kind' => $kind,
        'written' => $error->written,
        'attempts' => $error->attempts,
        'idempotencyKey' => $error->idempotencyKey,
    ];
    if ($error instanceof ProblemException) {
        $told += [
            'code' => $error->problemCode,
            'status' => $error->status,
            'requestId' => $error->requestId,
            'retryAfterSeconds' => $error->retryAfterSeconds,
            'fields' => $error->fields,
        ];
    }
    return $error instanceof LeadAlreadyOpenException ? $told + ['existingLeadId' => $error->existingLeadId] : $told;
}
