<?php

declare(strict_types=1);

namespace LeadIntake\Transport;

use Psr\Http\Client\ClientExceptionInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;

/**
 * Sends by a PSR-18 client. PSR-18 has no way to say when to give up, and none to say that nobody could be connected to:
 * the client needs a timeout of its own and must follow no redirects, and no failure of it is taken for one at which the
 * request never left.
 */
final class Psr18Transport implements Transport
{
    public function __construct(
        private readonly ClientInterface $client,
        private readonly RequestFactoryInterface $requestFactory,
        private readonly StreamFactoryInterface $streamFactory,
    ) {
    }

    public function send(string $method, string $url, array $headers, string $body, float $timeoutSeconds): Response
    {
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
            // Reading the body of an answer that breaks off fails as a stream does.
            // What the client says may name the address.
            throw new TransportException($error::class, previous: $error);
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
