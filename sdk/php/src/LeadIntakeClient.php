<?php

declare(strict_types=1);

namespace LeadIntake;

use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Internal\Call;
use LeadIntake\Internal\Check;
use LeadIntake\Internal\Configuration;
use LeadIntake\Internal\Repeated;
use LeadIntake\Internal\Secret;
use LeadIntake\Internal\Sender;
use LeadIntake\Internal\Uuid;
use LeadIntake\Transport\CurlTransport;
use LeadIntake\Transport\Response;
use LeadIntake\Transport\Transport;
use Psr\Log\LoggerInterface;

/**
 * A client of the API with one key. A request that fails throws a LeadIntakeException; invalid arguments throw an
 * InvalidArgumentException before anything is sent.
 */
final class LeadIntakeClient
{
    private readonly string $leadsUrl;

    /** The headers of all requests. */
    private readonly Secret $headers;
    private readonly Sender $sender;

    /**
     * @param string $baseUrl the base URL of the API, without `/v1`: `https://api.example.com`
     * @param string $apiKey the secret of an API key, `lik_…`; keep it on the server
     * @param float $deadlineSeconds the time limit of a request over all attempts
     * @param float $attemptTimeoutSeconds the time limit of one attempt
     * @param ?Transport $transport sends the requests instead of the curl extension
     * @param ?LoggerInterface $logger logs failed attempts, without secrets or personal data
     * @param ?\Closure(AttemptReport): void $onAttempt called after each attempt of each request, for logs and metrics; its
     *     exceptions are written to PHP's error log
     * @param bool $allowHttp permits an http address outside this machine and its network, where others can read the key and the leads
     *
     * @throws \InvalidArgumentException when the base URL, the key or a time limit is invalid
     * @throws \LogicException when the curl extension is missing and no transport is given
     */
    public function __construct(
        #[\SensitiveParameter] string $baseUrl,
        #[\SensitiveParameter] string $apiKey,
        float $deadlineSeconds = 60.0,
        float $attemptTimeoutSeconds = 10.0,
        ?Transport $transport = null,
        ?LoggerInterface $logger = null,
        ?\Closure $onAttempt = null,
        bool $allowHttp = false,
    ) {
        $this->leadsUrl = Configuration::leadsUrl($baseUrl, $allowHttp);
        $this->headers = new Secret(Configuration::headers($apiKey));
        $transport ??= self::curl();
        $this->sender = new Sender($transport, $deadlineSeconds, $attemptTimeoutSeconds, $logger, $onAttempt);
    }

    /**
     * Finds out before the first lead whether the address, the key, its scopes and the clock are right. Sends at most two
     * requests, once each, which count against the quota: a list of one lead, and a creation that cannot write, because it has
     * neither data nor an idempotency key. A malformed address or key becomes a finding, not an error.
     *
     * @param string $baseUrl as for the client
     * @param string $apiKey as for the client
     * @param float $attemptTimeoutSeconds the time limit of each request
     * @param ?Transport $transport as for the client
     * @param bool $allowHttp as for the client
     *
     * @throws \LogicException when the curl extension is missing and no transport is given
     */
    public static function check(
        #[\SensitiveParameter] string $baseUrl,
        #[\SensitiveParameter] string $apiKey,
        float $attemptTimeoutSeconds = 10.0,
        ?Transport $transport = null,
        bool $allowHttp = false,
    ): CheckReport {
        return Check::of($baseUrl, $apiKey, $allowHttp, $transport ?? self::curl(), $attemptTimeoutSeconds);
    }

    /**
     * Creates a lead. Repeats a creation whose outcome is unknown with the same key.
     *
     * @param LeadCapture|array<string, mixed> $capture the lead; an array is sent unchanged, with the field names of the API
     * @param ?string $idempotencyKey a UUID that identifies this creation; store it with the data and reuse it to repeat the
     *     creation after a crash. By default one is generated for this call and its attempts
     * @param ?float $deadlineSeconds the time limit of this call, instead of that of the client
     * @param ?\Closure(): bool $isCancelled called about once a second or more often: true ends the call, with a NoAnswerException
     *     whose $written says whether the lead may have been written
     *
     * @throws LeadIntakeException
     * @throws \InvalidArgumentException when JSON cannot represent the lead, the key is not a UUID, or the deadline is invalid
     */
    public function createLead(
        #[\SensitiveParameter] LeadCapture|array $capture,
        ?string $idempotencyKey = null,
        ?float $deadlineSeconds = null,
        ?\Closure $isCancelled = null,
    ): CreatedLead {
        $key = $idempotencyKey ?? Uuid::random();
        if (Uuid::from($key) === null) {
            throw new \InvalidArgumentException('idempotencyKey must be a UUID with hyphens');
        }
        if (is_array($capture) && array_is_list($capture)) {
            throw new \InvalidArgumentException('the lead cannot be sent: it has no named fields');
        }
        try {
            $body = json_encode($capture, JSON_THROW_ON_ERROR);
        } catch (\JsonException $error) {
            // Without the previous exception, whose trace has the lead.
            throw new \InvalidArgumentException("the lead cannot be sent: {$error->getMessage()}");
        }
        $headers = $this->headers->reveal() + ['Content-Type' => 'application/json', 'Idempotency-Key' => $key];
        $sent = json_decode($body, true);
        $read = static fn (#[\SensitiveParameter] array $json, Response $response, int $attempts): CreatedLead => new CreatedLead(
            self::lead(Repeated::in(self::member($json, 'lead'), $sent)),
            isset($response->headers['idempotent-replayed']),
            $key,
            $attempts,
        );
        $call = new Call('POST', $this->leadsUrl, $headers, $read, $body, $key);
        return $this->sender->send($call, $deadlineSeconds, $isCancelled);
    }

    /**
     * Returns the current state of a lead.
     *
     * @param ?float $deadlineSeconds as for createLead()
     * @param ?\Closure(): bool $isCancelled as for createLead()
     *
     * @throws LeadIntakeException
     * @throws \InvalidArgumentException when the id is empty, or the deadline is invalid
     */
    public function getLead(string $id, ?float $deadlineSeconds = null, ?\Closure $isCancelled = null): Lead
    {
        // A URL drops `.` and `..` from its path, and an empty id would address the list.
        if (in_array($id, ['', '.', '..'], true)) {
            throw new \InvalidArgumentException('getLead takes the id of a lead');
        }
        $read = static fn (#[\SensitiveParameter] array $json): Lead => self::lead(self::member($json, 'lead'));
        return $this->read('/' . rawurlencode($id), $read, $deadlineSeconds, $isCancelled);
    }

    /**
     * Returns one page of leads, newest first.
     *
     * @param ?int $limit leads per page, 1 to 100; default: 25
     * @param ?string $cursor the `nextCursor` of the previous page; default: the first page
     * @param ?float $deadlineSeconds as for createLead()
     * @param ?\Closure(): bool $isCancelled as for createLead()
     *
     * @throws LeadIntakeException
     */
    public function listLeads(
        ?int $limit = null,
        ?string $cursor = null,
        ?float $deadlineSeconds = null,
        ?\Closure $isCancelled = null,
    ): LeadList {
        $query = http_build_query(['limit' => $limit, 'cursor' => $cursor]);
        $read = static fn (#[\SensitiveParameter] array $json): LeadList => new LeadList(
            array_map(self::lead(...), self::member($json, 'leads')),
            self::member($json, 'nextCursor'),
        );
        return $this->read($query === '' ? '' : "?$query", $read, $deadlineSeconds, $isCancelled);
    }

    /**
     * Iterates over all leads, newest first. Requests each page when it is needed, with a deadline per page.
     *
     * @param ?int $limit leads per page, 1 to 100; default: 25
     * @param ?float $deadlineSeconds of each page, as for createLead()
     * @param ?\Closure(): bool $isCancelled as for createLead()
     * @return \Generator<int, Lead>
     *
     * @throws LeadIntakeException
     */
    public function allLeads(?int $limit = null, ?float $deadlineSeconds = null, ?\Closure $isCancelled = null): \Generator
    {
        $cursor = null;
        do {
            $page = $this->listLeads($limit, $cursor, $deadlineSeconds, $isCancelled);
            foreach ($page->leads as $lead) {
                yield $lead;
            }
            $cursor = $page->nextCursor;
        } while ($cursor !== null);
    }

    /** Returns the quota from the latest response; null before the first one, and if it lacked the headers. */
    public function quota(): ?Quota
    {
        return $this->sender->quota;
    }

    private function read(string $path, \Closure $read, ?float $deadlineSeconds, ?\Closure $isCancelled): mixed
    {
        $call = new Call('GET', $this->leadsUrl . $path, $this->headers->reveal(), $read);
        return $this->sender->send($call, $deadlineSeconds, $isCancelled);
    }

    /** Reads a lead of a response. Only the id is required; without one, throws a TypeError or an exception. */
    private static function lead(#[\SensitiveParameter] array $lead): Lead
    {
        $id = self::member($lead, 'id');
        return new Lead(
            id: Uuid::from($id) === null ? throw new \UnexpectedValueException('the id is not a UUID') : $id,
            displayName: self::text($lead, 'displayName') ?? '',
            stage: self::text($lead, 'stage') ?? '',
            sourceId: self::text($lead, 'sourceId'),
            note: self::text($lead, 'note'),
            createdAt: self::time($lead, 'createdAt'),
            updatedAt: self::time($lead, 'updatedAt'),
        );
    }

    /** @param array<mixed> $json */
    private static function text(#[\SensitiveParameter] array $json, string $name): ?string
    {
        return is_string($json[$name] ?? null) ? $json[$name] : null;
    }

    /** @param array<mixed> $json */
    private static function time(#[\SensitiveParameter] array $json, string $name): ?\DateTimeImmutable
    {
        $time = self::text($json, $name) ?? '';
        return preg_match('/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/D', $time) ? date_create_immutable($time) ?: null : null;
    }

    /** @param array<mixed> $json */
    private static function member(#[\SensitiveParameter] array $json, string $name): mixed
    {
        return array_key_exists($name, $json) ? $json[$name] : throw new \UnexpectedValueException("without $name");
    }

    private static function curl(): CurlTransport
    {
        if (!extension_loaded('curl')) {
            throw new \LogicException('to send requests, enable the curl extension, or give a Psr18Transport');
        }
        return new CurlTransport();
    }
}
