<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * Checks the arguments of a client.
 *
 * @internal
 */
final class Configuration
{
    /** The address of the API: no user or password before the host, and no parameters. */
    private const BASE_URL = '~^https?://[^\s/?#@\0]+(?:/[^\s?#\0]*)?$~Di';

    /** A path that the client appends itself. */
    private const PATH_OF_API = '~/v1(?:/integrations(?:/leads)?)?/*$~D';

    /** The form of a key's secret: 32 random bytes and their CRC-32, in base64url. */
    private const KEY = '/^lik_[A-Za-z0-9_-]{48}$/D';
    private const KEY_LENGTH = 52;

    /** Whether others on the network can read requests to the address. */
    public static function isOpenToOthers(#[\SensitiveParameter] string $baseUrl): bool
    {
        return stripos($baseUrl, 'http:') === 0 && !preg_match('~' . Outcomes::HTTP_WITHIN . '~Di', $baseUrl);
    }

    /** Returns the address of the leads. */
    public static function leadsUrl(#[\SensitiveParameter] string $baseUrl, bool $allowHttp): string
    {
        $isUrl = preg_match(self::BASE_URL, $baseUrl) && parse_url($baseUrl) !== false;
        if (!$isUrl || preg_match(self::PATH_OF_API, $baseUrl)) {
            $must = 'baseUrl must be an address such as https://api.example.com, without /v1 and credentials';
            throw new \InvalidArgumentException($must);
        }
        if (!$allowHttp && self::isOpenToOthers($baseUrl)) {
            $must = 'baseUrl must begin with https, or others can read the key and the leads; allowHttp permits http';
            throw new \InvalidArgumentException($must);
        }
        return rtrim($baseUrl, '/') . '/v1/integrations/leads';
    }

    /** @return array<string, string> the headers of all requests with a key; the message of the exception omits the key */
    public static function headers(#[\SensitiveParameter] string $apiKey): array
    {
        $fault = self::faultOfKey($apiKey);
        if ($fault !== null) {
            $must = "apiKey must be the whole secret of an API key, lik_ and 48 characters: $fault";
            throw new \InvalidArgumentException($must);
        }
        return [
            'Authorization' => "Bearer $apiKey",
            'User-Agent' => Outcomes::USER_AGENT,
            'Accept-Encoding' => Encoding::accepted(),
        ];
    }

    /** @return ?string the fault of a key, without the key, in the words of all clients */
    public static function faultOfKey(#[\SensitiveParameter] string $apiKey): ?string
    {
        return match (true) {
            $apiKey === '' => 'it is empty',
            stripos($apiKey, 'Bearer') === 0 => 'it begins with Bearer, which the client adds itself',
            preg_match('/\s/', $apiKey) === 1 => 'it has white space',
            strlen($apiKey) !== self::KEY_LENGTH => 'it has another length',
            !preg_match(self::KEY, $apiKey) => 'it has other characters',
            !self::hasChecksum(base64_decode(strtr(substr($apiKey, 4), '-_', '+/'))) =>
                'its checksum is wrong, so it has a wrong character',
            default => null,
        };
    }

    private static function hasChecksum(#[\SensitiveParameter] string $bytes): bool
    {
        return hash('crc32b', substr($bytes, 0, 32), true) === substr($bytes, 32);
    }
}
