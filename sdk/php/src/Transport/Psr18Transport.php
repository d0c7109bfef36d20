<?php

declare(strict_types=1);

namespace LeadIntake\Transport;

use Psr\Http\Client\ClientExceptionInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;

/**
 * Sends requests with a PSR-18 client. PSR-18 has no timeouts and does not report failed connections: configure the client
 * with a timeout and without redirects. After any failure the request counts as possibly sent.
 */
final class Psr18Transport implements Transport
{
    public function __construct(
        private readonly ClientInterface $client,
        private readonly RequestFactoryInterface $requestFactory,
        private readonly StreamFactoryInterface $streamFactory,
    ) {
    }

    public function send(
        string $method,
        string $url,
        #[\SensitiveParameter] array $headers,
        #[\SensitiveParameter] string $body,
        float $timeoutSeconds,
    ): Response {
        $request = $this->requestFactory->createRequest($method, $url);
        foreach ($headers as $name => $value) {
            $request = $request->withHeader($name, $value);
        }
        if ($method === 'POST') {
            $request = $request->withBody($this->streamFactory->createStream($body));
        }
        try {
            $response = $this->client->sendRequest($request);
            $received = [];
            foreach (array_keys($response->getHeaders()) as $name) {
                $received[strtolower((string) $name)] = $response->getHeaderLine((string) $name);
            }
            return new Response($response->getStatusCode(), $received, self::read($response->getBody()));
        } catch (TransportException $error) {
            throw $error;
        } catch (ClientExceptionInterface | \RuntimeException $error) {
            // Reading a truncated body throws a RuntimeException. Only curl's error number is taken from it: the message may contain the
            // address, and the client's exception or its trace has the request with the key and the lead.
            $number = preg_match('/\bcURL error (\d+)/i', $error->getMessage(), $found) ? (int) $found[1] : 0;
            $isOfCurl = $number > 0 && function_exists('curl_strerror');
            throw new TransportException(
                $isOfCurl ? (string) curl_strerror($number) : $error::class,
                previous: new \RuntimeException($error->getMessage()),
                fault: $isOfCurl ? CurlTransport::FAULTS[$number] ?? 'no_answer' : 'no_answer',
            );
        }
    }

    private static function read(StreamInterface $body): string
    {
        if ($body->isSeekable()) {
            $body->rewind();
        }
        $read = '';
        while (!$body->eof() && ($piece = $body->read(65_536)) !== '') {
            $read .= $piece;
            if (strlen($read) > Response::MAX_BYTES) {
                $body->close();
                throw TransportException::tooLong();
            }
        }
        return $read;
    }
}
