<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\CheckFinding;
use LeadIntake\CheckReport;
use LeadIntake\Transport\Response;
use LeadIntake\Transport\Transport;
use LeadIntake\Transport\TransportException;

/**
 * Finds out before the first lead whether a configuration is right.
 *
 * @internal
 */
final class Check
{
    /** The largest acceptable difference between the clocks. */
    private const MAX_CLOCK_DIFFERENCE_SECONDS = 5 * 60;

    private const PARTS = ['address', 'key', 'leads.create', 'leads.read', 'clock'];

    private const KEY_PROBLEMS = [
        'integration_key_invalid' => 'key_refused',
        'subscription_suspended' => 'studio_suspended',
        'integration_issuer_forbidden' => 'issuer_forbidden',
    ];

    /** @var array<string, array{0: string, 1?: int|string|null}> by part: the code, and the number or the fault in its sentence */
    private array $found = [];

    private function __construct(private readonly Transport $transport, private readonly float $timeoutSeconds)
    {
    }

    public static function of(
        #[\SensitiveParameter] string $baseUrl,
        #[\SensitiveParameter] string $apiKey,
        bool $allowHttp,
        Transport $transport,
        float $timeoutSeconds,
    ): CheckReport {
        $check = new self($transport, $timeoutSeconds);
        $url = self::orNull(static fn (): string => Configuration::leadsUrl($baseUrl, true));
        $headers = self::orNull(static fn (): array => Configuration::headers($apiKey));
        $isOpen = $url !== null && !$allowHttp && Configuration::isOpenToOthers($baseUrl);
        if ($url === null || $headers === null || $isOpen) {
            $address = $url === null ? 'address_malformed' : 'address_not_https';
            $check->found = [
                'address' => [$url === null || $isOpen ? $address : 'not_checked'],
                'key' => $headers === null ? ['key_malformed', Configuration::faultOfKey($apiKey)] : ['not_checked'],
            ];
        } else {
            $check->read($url, $headers);
        }
        return $check->report();
    }

    /** @param array<string, string> $headers */
    private function read(string $url, #[\SensitiveParameter] array $headers): void
    {
        $leads = static fn (#[\SensitiveParameter] array $json): array => $json['leads'];
        $outcome = $this->once(new Call('GET', "$url?limit=1", $headers, $leads), $response);
        $isOfService = !$outcome instanceof Silence;
        $this->found['clock'] = $isOfService ? self::clock($response) : ['not_checked'];
        if ($outcome instanceof Silence) {
            $this->found['address'] = self::withoutAnswer($outcome);
            return;
        }
        if ($outcome instanceof Problem && in_array($outcome->code, ['route_not_found', 'method_not_allowed'], true)) {
            $this->found['address'] = ['wrong_path'];
            return;
        }
        if ($outcome instanceof Problem && $outcome->response->status >= Outcomes::FAILING_FROM_STATUS) {
            $this->found['address'] = ['unavailable', $outcome->response->status];
            return;
        }
        $this->found['address'] = ['address_right'];
        if ($outcome instanceof Problem && $outcome->code !== 'integration_scope_forbidden') {
            $this->found['key'] = self::problem($outcome);
            return;
        }
        $this->found['key'] = ['key_right'];
        $this->found['leads.read'] = [$outcome instanceof Problem ? 'read_missing' : 'read_granted'];
        $this->create($url, $headers);
    }

    /** @param array<string, string> $headers */
    private function create(string $url, #[\SensitiveParameter] array $headers): void
    {
        $lead = static fn (#[\SensitiveParameter] array $json): array => $json['lead'];
        $json = $headers + ['Content-Type' => 'application/json'];
        $outcome = $this->once(new Call('POST', $url, $json, $lead, '{}'), $response);
        if ($outcome instanceof Silence) {
            $status = $outcome->response?->status;
            $this->found['leads.create'] = $status === null ? self::withoutAnswer($outcome) : ['create_stopped', $status];
        } elseif (!$outcome instanceof Problem) {
            $this->found['leads.create'] = ['unexpected', 201];
        } elseif (isset(self::KEY_PROBLEMS[$outcome->code])) {
            $this->found['key'] = self::problem($outcome);
        } else {
            $this->found['leads.create'] = match (true) {
                // The service checks the data last, so faulty fields prove that all else is right. The key was left out.
                $outcome->code === 'integration_invalid_request'
                    && Problem::areOfData(array_diff_key($outcome->fields, ['Idempotency-Key' => []])) => ['create_granted'],
                $outcome->code === 'integration_scope_forbidden' => ['create_missing'],
                $outcome->response->status >= Outcomes::FAILING_FROM_STATUS => ['unavailable', $outcome->response->status],
                default => self::problem($outcome),
            };
        }
    }

    private function once(#[\SensitiveParameter] Call $call, ?Response &$response): mixed
    {
        try {
            $request = [$call->method, $call->url, $call->headers, $call->body, $this->timeoutSeconds];
            $response = Encoding::decoded($this->transport->send(...$request));
        } catch (TransportException $cause) {
            return new Silence($cause);
        }
        return $call->outcomeOf($response, 1);
    }

    /** @return array{0: string, 1: int} */
    private static function problem(Problem $problem): array
    {
        return $problem->code === 'integration_rate_limited'
            ? ['quota_used_up', $problem->retryAfterSeconds() ?? 1]
            : [self::KEY_PROBLEMS[$problem->code] ?? 'unexpected', $problem->response->status];
    }

    /** @return array{0: string, 1?: int} */
    private static function withoutAnswer(Silence $silence): array
    {
        if ($silence->response === null) {
            return [$silence->cause->fault];
        }
        $status = $silence->response->status;
        if ($status < 300 || $status >= 400) {
            return ['not_of_service', $status];
        }
        $isToHttps = stripos($silence->response->header('location'), 'https:') === 0;
        return [$isToHttps ? 'redirected_to_https' : 'redirected', $status];
    }

    /** @return array{0: string, 1?: int} */
    private static function clock(Response $response): array
    {
        $date = strtotime($response->header('date'));
        if ($date === false) {
            return ['clock_unknown'];
        }
        $ahead = time() - $date;
        return abs($ahead) <= self::MAX_CLOCK_DIFFERENCE_SECONDS
            ? ['clock_right']
            : [$ahead > 0 ? 'clock_ahead' : 'clock_behind', (int) round(abs($ahead) / 60)];
    }

    private function report(): CheckReport
    {
        $findings = [];
        foreach (self::PARTS as $about) {
            [$code, $part] = ($this->found[$about] ?? ['not_checked']) + [1 => ''];
            [$verdict, $sentence] = Outcomes::CHECK_FINDINGS[$code];
            $findings[] = new CheckFinding($about, $verdict, $code, preg_replace('/\{\w+\}/', (string) $part, $sentence));
        }
        $codes = array_column($findings, 'code');
        return new CheckReport(in_array('create_granted', $codes, true), in_array('read_granted', $codes, true), $findings);
    }

    private static function orNull(\Closure $value): mixed
    {
        try {
            return $value();
        } catch (\InvalidArgumentException) {
            return null;
        }
    }
}
