<?php

declare(strict_types=1);

namespace LeadIntake\Transport;

/** Sends requests with PHP's curl extension, over one connection as long as it lasts. */
final class CurlTransport implements CancellableTransport
{
    /** Errors before the request is sent: no connection, or one whose TLS handshake fails or whose certificate is refused. */
    private const NOT_CONNECTED = [
        CURLE_COULDNT_RESOLVE_PROXY,
        CURLE_COULDNT_RESOLVE_HOST,
        CURLE_COULDNT_CONNECT,
        CURLE_SSL_CONNECT_ERROR,
        CURLE_SSL_CACERT,
        CURLE_SSL_PEER_CERTIFICATE,
    ];

    /** The findings of a check, by error. @internal */
    public const FAULTS = [
        CURLE_COULDNT_RESOLVE_PROXY => 'name_unknown',
        CURLE_COULDNT_RESOLVE_HOST => 'name_unknown',
        CURLE_COULDNT_CONNECT => 'connection_refused',
        CURLE_SSL_CONNECT_ERROR => 'tls_failed',
        CURLE_SSL_CACERT => 'tls_failed',
        CURLE_SSL_PEER_CERTIFICATE => 'tls_failed',
        CURLE_OPERATION_TIMEDOUT => 'timed_out',
    ];

    private ?\CurlHandle $curl = null;

    /** The process that made the handle. A forked process would read the responses of others on the same connection. */
    private ?int $process = null;

    public function send(
        string $method,
        string $url,
        #[\SensitiveParameter] array $headers,
        #[\SensitiveParameter] string $body,
        float $timeoutSeconds,
    ): Response {
        return $this->transfer(null, $method, $url, $headers, $body, $timeoutSeconds);
    }

    public function sendUnless(
        \Closure $isCancelled,
        string $method,
        string $url,
        #[\SensitiveParameter] array $headers,
        #[\SensitiveParameter] string $body,
        float $timeoutSeconds,
    ): Response {
        return $this->transfer($isCancelled, $method, $url, $headers, $body, $timeoutSeconds);
    }

    /** @param array<string, string> $headers */
    private function transfer(
        ?\Closure $isCancelled,
        string $method,
        string $url,
        #[\SensitiveParameter] array $headers,
        #[\SensitiveParameter] string $body,
        float $timeoutSeconds,
    ): Response {
        $lines = [];
        foreach ($headers as $name => $value) {
            $lines[] = "$name: $value";
        }
        $received = [];
        $answered = '';
        $isTooLong = false;
        $isHeadWhole = false;
        // Hosts that disable this function do not allow forks either.
        $process = function_exists('getmypid') ? getmypid() : 0;
        if ($this->process !== $process) {
            [$this->curl, $this->process] = [curl_init(), $process];
        }
        $curl = $this->curl;
        curl_reset($curl);
        curl_setopt_array($curl, [
            CURLOPT_URL => $url,
            CURLOPT_HTTPHEADER => $lines,
            // Rounded up: 0 means no limit.
            CURLOPT_TIMEOUT_MS => (int) ceil($timeoutSeconds * 1000),
            CURLOPT_WRITEFUNCTION => static function ($curl, string $piece) use (&$answered, &$isTooLong): int {
                $isTooLong = strlen($answered) + strlen($piece) > Response::MAX_BYTES;
                if ($isTooLong) {
                    // Returning less than the piece's length aborts the transfer.
                    return 0;
                }
                $answered .= $piece;
                return strlen($piece);
            },
            CURLOPT_HEADERFUNCTION => static function ($curl, string $line) use (&$received, &$isHeadWhole): int {
                if (str_starts_with($line, 'HTTP/')) {
                    // An interim response such as 100 has its own headers.
                    [$received, $isHeadWhole] = [[], false];
                } elseif (trim($line) === '') {
                    $isHeadWhole = true;
                } elseif (str_contains($line, ':')) {
                    [$name, $value] = explode(':', $line, 2);
                    $name = strtolower(trim($name));
                    $received[$name] = isset($received[$name]) ? "$received[$name], " . trim($value) : trim($value);
                }
                return strlen($line);
            },
        ]);
        if ($method === 'POST') {
            curl_setopt($curl, CURLOPT_POSTFIELDS, $body);
        }
        if ($isCancelled !== null) {
            curl_setopt($curl, CURLOPT_NOPROGRESS, false);
            // Anything but 0 ends the transfer.
            curl_setopt($curl, CURLOPT_PROGRESSFUNCTION, static fn (mixed ...$progress): int => (int) $isCancelled());
        }
        $isWhole = curl_exec($curl);
        if ($isTooLong) {
            throw TransportException::tooLong();
        }
        if (!$isWhole) {
            $number = curl_errno($curl);
            // When a kept-alive connection dies, curl resends the request on another one, and reports only that one.
            $mayHaveArrived = !in_array($number, self::NOT_CONNECTED, true) || curl_getinfo($curl, CURLINFO_REQUEST_SIZE) > 0;
            // curl_error() contains the address, so it goes into the previous exception only.
            $details = new \RuntimeException(curl_error($curl));
            $fault = self::FAULTS[$number] ?? 'no_answer';
            throw new TransportException((string) curl_strerror($number), $mayHaveArrived, $details, $fault);
        }
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        // curl accepts truncated headers as a response.
        if (!$isHeadWhole || $status < 200) {
            throw new TransportException('the answer is incomplete');
        }
        return new Response($status, $received, $answered);
    }
}
