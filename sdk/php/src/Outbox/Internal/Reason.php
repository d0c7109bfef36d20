<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Exception\ProblemException;

/**
 * Why a lead is not delivered, for people; the same in all languages. It has nothing of the lead's data.
 *
 * @internal
 */
final class Reason
{
    public const UNREADABLE = 'unreadable: the column capture has no JSON object';

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
        $said = $error->detail ?? $error->title;
        $said .= $fields === [] ? '' : ' [' . implode('; ', $fields) . ']';
        return self::cut("$error->status $error->problemCode: $said (request $error->requestId)");
    }

    /** Its message may have the visitor's data in it. */
    public static function ofListener(\Throwable $error): string
    {
        return self::cut('listener: ' . get_debug_type($error));
    }

    /** What was thrown, and is no answer. Its message may have the visitor's data in it. */
    public static function ofError(\Throwable $error): string
    {
        return self::cut(get_debug_type($error));
    }

    /** Printable characters, as many as the column takes; what is no UTF-8 no database would take. */
    private static function cut(string $text): string
    {
        $isText = preg_match('//u', $text) === 1;
        $printable = preg_replace($isText ? '/\p{Cc}+/u' : '/[^\x20-\x7e]+/', ' ', $text);
        preg_match('/^.{0,' . self::MAX_CHARACTERS . '}/su', $printable, $found);
        return $found[0];
    }
}
