<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Internal\PageHtml;

/**
 * A page of an outbox, for the people who look after its leads. It shows personal data and has no login: mount it behind
 * the website's.
 */
final class OutboxPage
{
    /** The maximum duration of a comparison in one request. The next request continues it. */
    private const COMPARING_SECONDS = 20;

    /** The maximum size of a request's body. The page's own are far below 1 KiB. */
    private const MAX_BODY_BYTES = 65_536;

    private const FAILED = 'The website has failed, perhaps because its database does not answer. Refresh in a minute; if it fails'
        . ' again, ask whoever runs the website.';

    private const NOT_SET_UP = 'The API key or the address of the service is not set up correctly: tell whoever runs the website.';

    /**
     * @param LeadIntakeClient|(\Closure(): LeadIntakeClient)|null $client one whose key has the scope `leads.read`, or a function
     *     that creates one for each comparison, so that wrong settings break nothing else. Without a client, the page cannot compare
     * @param ?\Closure(\Throwable): void $onError gets the exceptions that the page answers with 500, such as those of the
     *     database; default: error_log() gets their messages
     */
    public function __construct(
        private readonly Outbox $outbox,
        private readonly LeadIntakeClient|\Closure|null $client = null,
        private readonly ?\Closure $onError = null,
    ) {
    }

    /**
     * Returns the page, its JSON, or a refusal. Throws nothing.
     *
     * @param array<string, string|list<string>> $headers of the request, such as getallheaders() returns
     * @param string $body the text of the request
     */
    public function respond(string $method, array $headers, #[\SensitiveParameter] string $body = ''): PageResponse
    {
        $headers = array_map(static fn (string|array $value): string => implode(', ', (array) $value), array_change_key_case($headers));
        try {
            return match (true) {
                $method === 'POST' => $this->act($headers, $body),
                $method !== 'GET' && $method !== 'HEAD' => self::refusal(405, 'The page accepts only GET and POST.'),
                str_contains($headers['accept'] ?? '', 'application/json') => $this->report(),
                default => self::response(200, 'text/html; charset=utf-8', PageHtml::PAGE),
            };
        } catch (OutboxException $error) {
            return self::refusal(409, ucfirst($error->getMessage()) . '.');
        } catch (\Throwable $error) {
            $this->tell($error);
            return self::refusal(500, self::FAILED);
        }
    }

    /** @param array<string, string> $headers */
    private function act(array $headers, #[\SensitiveParameter] string $body): PageResponse
    {
        // Before a browser lets another website's page send either, it asks for permission (CORS), which nothing here gives.
        if (!preg_match('~^application/json\b~i', $headers['content-type'] ?? '')) {
            return self::refusal(415, 'The request must have the type application/json.');
        }
        if (trim($headers['x-outbox-page'] ?? '') !== '1') {
            return self::refusal(403, 'The request is not from the page: it must have the header X-Outbox-Page: 1.');
        }
        if (strlen($body) > self::MAX_BODY_BYTES) {
            return self::refusal(413, 'The request is longer than 64 KiB.');
        }
        $request = json_decode($body, true);
        if (json_last_error() !== JSON_ERROR_NONE) {
            return self::refusal(400, 'The request is not JSON.');
        }
        ['action' => $action, 'idempotencyKey' => $key] = (array) $request + ['action' => null, 'idempotencyKey' => null];
        if ($action === 'compare') {
            if ($this->client === null) {
                return self::refusal(409, 'The page has no API key with the scope leads.read.');
            }
            try {
                $client = $this->client instanceof \Closure ? ($this->client)() : $this->client;
            } catch (\Throwable $error) {
                $this->tell($error);
                return self::refusal(409, self::NOT_SET_UP);
            }
            $this->outbox->reconcile($client, self::COMPARING_SECONDS);
        } elseif (in_array($action, ['retry', 'discard'], true) && is_string($key) && !preg_match('/\p{Cc}/u', $key)) {
            $action === 'retry' ? $this->outbox->retry($key) : $this->outbox->discard($key);
        } else {
            return self::refusal(400, 'The action must be compare, or retry or discard with an idempotencyKey.');
        }
        return $this->report();
    }

    private function report(): PageResponse
    {
        $attention = $this->outbox->needsAttention();
        $waiting = $this->outbox->waiting();
        $comparison = $this->outbox->lastReconciliation();
        return self::json(200, [
            'needsAttention' => [
                'count' => $attention->count,
                'entries' => array_map(static fn (Entry $entry): array => [
                    'idempotencyKey' => $entry->idempotencyKey,
                    'state' => $entry->state,
                    'createdAt' => self::time($entry->createdAt),
                    'attempts' => $entry->attempts,
                    'reason' => $entry->reason,
                    'capture' => $entry->object(),
                ], $attention->entries),
            ],
            'waiting' => [
                'count' => $waiting?->count ?? 0,
                'since' => self::time($waiting?->oldest),
                'reasons' => (object) ($waiting?->reasons ?? []),
            ],
            'comparison' => $comparison === null ? null : [
                'startedAt' => self::time($comparison->startedAt),
                'since' => self::time($comparison->since),
                'differences' => array_map(
                    static fn (Difference $each): array => ['createdAt' => self::time($each->createdAt)] + get_object_vars($each),
                    $comparison->differences,
                ),
            ] + get_object_vars($comparison),
            'mayCompare' => $this->client !== null,
        ]);
    }

    private static function time(?\DateTimeImmutable $time): ?string
    {
        return $time?->format('Y-m-d\TH:i:s.v\Z');
    }

    private function tell(\Throwable $error): void
    {
        $this->onError === null
            ? error_log('The page of the outbox has failed: ' . $error::class . ': ' . $error->getMessage())
            : ($this->onError)($error);
    }

    private static function refusal(int $status, string $error): PageResponse
    {
        return self::json($status, ['error' => $error]);
    }

    /** @param array<string, mixed> $body */
    private static function json(int $status, #[\SensitiveParameter] array $body): PageResponse
    {
        return self::response($status, 'application/json', json_encode($body, JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE));
    }

    private static function response(int $status, string $type, #[\SensitiveParameter] string $body): PageResponse
    {
        return new PageResponse($status, PageHtml::HEADERS + ['Content-Type' => $type], $body);
    }
}
