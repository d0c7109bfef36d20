<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\Transport\Response;
use LeadIntake\Transport\TransportException;

/**
 * Decodes responses. It knows only gzip, which intermediaries use when they encode unasked.
 *
 * @internal
 */
final class Encoding
{
    /** The first byte of gzip, with which no JSON begins. A transport that has decoded a response may leave its header. */
    private const FIRST_BYTE = "\x1f";

    /** The number of bytes decoded at once, which expand at most a thousandfold. */
    private const PIECE_BYTES = 4096;

    /** Returns the value of Accept-Encoding. PHP may be built without zlib. */
    public static function accepted(): string
    {
        return function_exists('inflate_init') ? 'gzip' : 'identity';
    }

    /**
     * Returns the decoded response; unchanged, with its header, if it cannot be decoded.
     *
     * @throws TransportException when the decoded body is longer than Response::MAX_BYTES
     */
    public static function decoded(#[\SensitiveParameter] Response $response): Response
    {
        $isGzip = preg_match('/^(?:x-)?gzip$/i', trim($response->header('content-encoding')));
        if (!$isGzip || self::accepted() !== 'gzip' || !str_starts_with($response->body, self::FIRST_BYTE)) {
            return $response;
        }
        $inflation = inflate_init(ZLIB_ENCODING_GZIP);
        $body = '';
        foreach (str_split($response->body, self::PIECE_BYTES) as $piece) {
            $part = @inflate_add($inflation, $piece);
            if ($part === false) {
                return $response;
            }
            $body .= $part;
            if (strlen($body) > Response::MAX_BYTES) {
                throw TransportException::tooLong();
            }
        }
        $isWhole = inflate_get_status($inflation) === ZLIB_STREAM_END;
        return $isWhole ? new Response($response->status, array_diff_key($response->headers, ['content-encoding' => '']), $body) : $response;
    }

    /** Returns the encoding that a response still has, for people; null: none. */
    public static function of(Response $response): ?string
    {
        $value = $response->header('content-encoding');
        return $value === '' ? null : (preg_match('/[\w-]{1,32}/', $value, $found) ? $found[0] : 'unnamed');
    }
}
