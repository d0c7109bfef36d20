<?php

// Creates a lead with PHP 8 and its curl extension: php create-lead.php LEAD_AS_JSON [IDEMPOTENCY_KEY]

declare(strict_types=1);

const ATTEMPTS = 6;
const UUID = '/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/iD';
// The service has only these codes. A firewall's response with another code is not a refusal.
const CODES = '/^(integration_\w+|subscription_suspended|route_not_found|method_not_allowed|internal_error)$/D';

final class OutcomeUnknown extends Exception
{
}

/** Returns the lead; null when the contact already has an open one, which is a normal outcome. */
function createLead(array $lead, string $idempotencyKey): ?array
{
    for ($attempt = 0; $attempt < ATTEMPTS; $attempt++) {
        [$status, $type, $body, $retryAfter] = send($lead, $idempotencyKey);
        $id = $body['lead']['id'] ?? null;
        $code = $body['code'] ?? null;
        // Only the service's own response counts: proxies respond as well, even with JSON.
        if ($status === 201 && $type === 'application/json' && is_string($id) && preg_match(UUID, $id)) {
            return $body['lead'];
        }
        $isOfService = is_string($code) && preg_match(CODES, $code);
        $isProblem = $status >= 400 && $type === 'application/problem+json' && $isOfService;
        if ($isProblem && $code === 'integration_lead_already_open') {
            return null;
        }
        // A retry does not help for other 4xx, nor for a key that created a lead with other data (409): the response
        // states the problem.
        if ($isProblem && $status < 500 && $status !== 408 && $status !== 429) {
            throw new RuntimeException(json_encode($body));
        }

        $backOff = 2 ** $attempt * (1 + random_int(0, 250) / 1000);
        if ($attempt + 1 < ATTEMPTS) {
            $seconds = min(max($backOff, $retryAfter), 86_400);
            // usleep would cut a wait of more than an hour short.
            time_nanosleep((int) $seconds, (int) (fmod($seconds, 1) * 1e9));
        }
    }
    $last = $status . ' ' . ($isProblem ? $code : 'not from the service');
    throw new OutcomeUnknown("no certain outcome ($last): repeat later with the same data and the key $idempotencyKey");
}

/**
 * Returns status, media type, body and Retry-After. Without a response (0), the lead may have been created nevertheless;
 * a retry with the same key finds out. curl follows no redirect by itself.
 */
function send(array $lead, string $idempotencyKey): array
{
    $retryAfter = 0;
    $request = curl_init(rtrim(getenv('LEAD_INTAKE_URL'), '/') . '/v1/integrations/leads');
    curl_setopt_array($request, [
        CURLOPT_POSTFIELDS => json_encode($lead, JSON_THROW_ON_ERROR),
        CURLOPT_HTTPHEADER => [
            'Authorization: Bearer ' . getenv('LEAD_INTAKE_KEY'),
            'Content-Type: application/json',
            "Idempotency-Key: $idempotencyKey",
            // Firewalls refuse programs without a name.
            'User-Agent: website/1.0',
        ],
        CURLOPT_HEADERFUNCTION => function ($request, string $line) use (&$retryAfter): int {
            if (preg_match('/^Retry-After: *(\d+)\s*$/i', $line, $found)) {
                $retryAfter = (int) $found[1];
            }
            return strlen($line);
        },
        // curl asks for the encodings that it decodes, and also decodes those that come unasked.
        CURLOPT_ENCODING => '',
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 10,
    ]);
    $text = curl_exec($request);
    $status = $text === false ? 0 : curl_getinfo($request, CURLINFO_RESPONSE_CODE);
    $type = strtolower(explode(';', (string) curl_getinfo($request, CURLINFO_CONTENT_TYPE))[0]);
    $body = json_decode((string) $text, true);
    return [$status, $type, is_array($body) ? $body : [], $retryAfter];
}

/** Returns a random UUID (version 4). */
function uuid(): string
{
    $bytes = random_bytes(16);
    $bytes[6] = chr(ord($bytes[6]) & 0x0f | 0x40);
    $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);
    return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
}

// One key per lead, the same for every retry: store it with the lead until there is a response.
try {
    $lead = json_decode($argv[1], true, flags: JSON_THROW_ON_ERROR);
    $created = createLead($lead, $argv[2] ?? uuid());
    echo $created ? json_encode(['lead' => $created]) : 'open already', "\n";
    // A setting of the studio decides whether it keeps the note of such a lead, so keep it yourself.
    exit($created || ($lead['note'] ?? '') === '' ? 0 : 3);
} catch (OutcomeUnknown | RuntimeException $error) {
    fwrite(STDERR, $error->getMessage() . "\n");
    exit($error instanceof OutcomeUnknown ? 75 : 1);
}
