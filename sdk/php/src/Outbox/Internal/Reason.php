<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Exception\ProblemException;

/**
 * The human-readable reason why a lead is not delivered; the same in all languages. It contains none of the lead's data.
 *
 * @internal
 */
final class Reason
{
    private const MAX_CHARACTERS = 1000;

    /** `STATUS CODE: DETAIL [FIELDS] (request ID)`, or `no answer: …`. */
    public static function of(LeadIntakeException $error): string
    {
        if (!$error instanceof ProblemException) {
            return self::cut('no answer: ' . $error->getPrevious()?->getMessage());
        }
        $fields = [];
        foreach ($error->fields as $name => $messages) {
            $fields[] = "$name: " . implode(', ', $messages);
        }
        $text = $error->detail ?? $error->title;
        $text .= $fields === [] ? '' : ' [' . implode('; ', $fields) . ']';
        return self::cut("$error->status $error->problemCode: $text (request $error->requestId)");
    }

    /** Omits the message, because it may contain the visitor's data. */
    public static function ofListener(\Throwable $error): string
    {
        return self::cut('listener: ' . get_debug_type($error));
    }

    /** For an exception other than a response. Omits the message, because it may contain the visitor's data. */
    public static function ofError(\Throwable $error): string
    {
        return self::cut(get_debug_type($error));
    }

    /** Keeps printable characters, up to the size of the column. Text that is not UTF-8 is reduced to ASCII, because databases reject it. */
    private static function cut(string $text): string
    {
        $isText = preg_match('//u', $text) === 1;
        $printable = preg_replace($isText ? '/\p{Cc}+/u' : '/[^\x20-\x7e]+/', ' ', $text);
        preg_match('/^.{0,' . self::MAX_CHARACTERS . '}/su', $printable, $found);
        return $found[0];
    }
}
