<?php
// Uses the client that openapi-generator makes for PHP, and prints the results as JSON.

declare(strict_types=1);

use LeadIntake\Api\LeadsApi;
use LeadIntake\ApiException;
use LeadIntake\Configuration;
use LeadIntake\Model\EmailContact;
use LeadIntake\Model\Lead;
use LeadIntake\Model\LeadCapture;
use LeadIntake\Model\PhoneContact;

// Loads the dependencies that Debian installs, then the client. Composer's autoloader would load both.
require 'GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class): void {
    require __DIR__ . '/client/lib/' . strtr(substr($class, strlen('LeadIntake\\')), '\\', '/') . '.php';
});

function apiWith(string $key, string $url = 'URL'): LeadsApi
{
    return new LeadsApi(config: (new Configuration())->setHost(getenv($url))->setAccessToken(getenv($key)));
}

/** Returns a lead as plain values, with times in milliseconds since 1970. */
function leadFields(Lead $lead): array
{
    return [
        'id' => $lead->getId(),
        'displayName' => $lead->getDisplayName(),
        'stage' => $lead->getStage(),
        'sourceId' => $lead->getSourceId(),
        'note' => $lead->getNote(),
        'createdAt' => (int) $lead->getCreatedAt()->format('Uv'),
        'updatedAt' => (int) $lead->getUpdatedAt()->format('Uv'),
    ];
}

/** Returns a header, whatever the case of its name. */
function headerOf(array $headers, string $name): ?string
{
    return array_change_key_case($headers)[$name][0] ?? null;
}

function refusal(callable $call): ?array
{
    try {
        $call();
    } catch (ApiException $error) {
        $problem = $error->getResponseObject();
        return [
            'status' => $error->getCode(),
            'code' => $problem->getCode(),
            'fields' => $problem->getFields(),
            'requestId' => $problem->getRequestId(),
            'retryAfter' => headerOf($error->getResponseHeaders(), 'retry-after'),
        ];
    }
    return null;
}

// Setters validate their values; constructors do not.
function captured(EmailContact|PhoneContact $contact): LeadCapture
{
    return (new LeadCapture())->setDisplayName('Zoë 🦉')->setContact($contact);
}

function emailOf(string $value): EmailContact
{
    return (new EmailContact())->setType(EmailContact::TYPE_EMAIL)->setValue($value);
}

function phoneOf(string $value): PhoneContact
{
    return (new PhoneContact())->setType(PhoneContact::TYPE_PHONE)->setValue($value);
}

function newId(): string
{
    return vsprintf('%s%s-%s-4%.3s-8%.3s-%s%s%s', str_split(bin2hex(random_bytes(18)), 4));
}

function create(LeadCapture $capture, string $key = 'KEY', ?string $idempotencyKey = null, string $url = 'URL'): array
{
    return apiWith($key, $url)->createLeadWithHttpInfo($idempotencyKey ?? newId(), $capture);
}

$email = captured(emailOf('zoë@straße.example'))->setNote("a\nb");
$phone = captured(phoneOf('+49 30 123456'))->setSourceId(getenv('SOURCE_ID'));
$other = captured(emailOf('other@example.org'));
$letters = captured(phoneOf('call me'));
$foreign = captured(emailOf('other@example.org'))->setSourceId(newId());

$api = apiWith('KEY');
$idempotencyKey = newId();
[$created, , $createdHeaders] = create($email, idempotencyKey: $idempotencyKey);
[$replayed, , $replayedHeaders] = create($email, idempotencyKey: $idempotencyKey);
[$byPhone] = create($phone);

$pages = [];
$cursor = null;
do {
    $page = $api->listLeads(limit: 1, cursor: $cursor);
    $pages[] = array_map(fn (Lead $lead) => $lead->getId(), $page->getLeads());
    $cursor = $page->getNextCursor();
} while ($cursor !== null);

$useUp = fn () => create($other, 'SCARCE_KEY', url: 'SCARCE_URL');
$useUp();

echo json_encode([
    'created' => leadFields($created->getLead()),
    'isReplay' => array_map(
        fn (array $headers) => headerOf($headers, 'idempotent-replayed'),
        [$createdHeaders, $replayedHeaders],
    ),
    'replayed' => leadFields($replayed->getLead()),
    'byPhone' => leadFields($byPhone->getLead()),
    'read' => leadFields($api->getLead($created->getLead()->getId())->getLead()),
    'pages' => $pages,
    'refusals' => [
        'invalid contact' => refusal(fn () => create($letters)),
        'invalid cursor' => refusal(fn () => $api->listLeads(cursor: 'none')),
        'invalid source' => refusal(fn () => create($foreign)),
        'invalid key' => refusal(fn () => create($other, 'INVALID_KEY')),
        'suspended' => refusal(fn () => create($other, 'SUSPENDED_KEY')),
        'other scope' => refusal(fn () => create($other, 'READING_KEY')),
        'issuer' => refusal(fn () => create($other, 'FORMER_OWNER_KEY')),
        'unknown lead' => refusal(fn () => $api->getLead(newId())),
        'other data' => refusal(fn () => create($other, idempotencyKey: $idempotencyKey)),
        'already open' => refusal(fn () => create($email)),
        'used up' => refusal($useUp),
    ],
]);
