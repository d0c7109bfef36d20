<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\Exception\ProblemException;
use LeadIntake\ProblemCode;
use LeadIntake\Transport\CurlTransport;
use LeadIntake\Transport\Response;
use LeadIntake\Transport\Transport;

/** Finds out before the first lead whether address, key, scopes and clock are right. It writes nothing. */
final class Connection implements Transport
{
    private const MOST_SECONDS_OFF = 300;

    private string $date = '';

    /** Sends by curl, and notes the service's time. */
    public function send(string $method, string $url, array $headers, string $body, float $timeoutSeconds): Response
    {
        $response = (new CurlTransport())->send($method, $url, $headers, $body, $timeoutSeconds);
        $this->date = $response->header('date');
        return $response;
    }

    /** @return array{bool, string} whether leads can be sent, and a sentence about it */
    public static function check(): array
    {
        $transport = new self();
        try {
            $client = Settings::client($transport);
        } catch (\Exception $error) {
            /* translators: %s: what is missing or wrong, in English */
            return [false, sprintf(__('This setting is missing or wrong: %s.', 'lead-intake'), $error->getMessage())];
        }
        // What is wrong with a lead itself, the service says only after all else.
        $create = self::codeOf(static fn () => $client->createLead(['displayName' => '']));
        $isRight = $create === ProblemCode::IntegrationInvalidRequest->value;
        $mayRead = $isRight && self::codeOf(static fn () => $client->listLeads(1)) === '';
        $secondsOff = abs((strtotime($transport->date) ?: time()) - time());
        return match (true) {
            $create === ProblemCode::IntegrationKeyInvalid->value
                => [false, __('The address is right, but the key is not: it was mistyped, replaced or revoked, or has expired.', 'lead-intake')],
            $create === ProblemCode::IntegrationScopeForbidden->value
                => [false, __('Address and key are right, but the key may not create leads: it needs the scope leads.create.', 'lead-intake')],
            !$isRight
                /* translators: %s: the answer of the service, in English */
                => [false, sprintf(__('No lead can be sent: %s', 'lead-intake'), $create)],
            $secondsOff > self::MOST_SECONDS_OFF
                /* translators: %d: number of seconds */
                => [false, sprintf(__('Address and key are right, but the clock of this website is %d seconds off.', 'lead-intake'), $secondsOff)],
            $mayRead => [true, __('Address, key, scopes and clock are right.', 'lead-intake')],
            default => [true, __('Address, key and clock are right; the key may create leads, and not read them.', 'lead-intake')],
        };
    }

    /** @return string the code of a problem, or what else is wrong; empty: nothing */
    private static function codeOf(\Closure $request): string
    {
        try {
            $request();
            return '';
        } catch (\Exception $error) {
            $isKnown = $error instanceof ProblemException && ProblemCode::tryFrom($error->problemCode) !== null;
            return $isKnown && $error->status < 500 ? $error->problemCode : $error->getMessage();
        }
    }
}
