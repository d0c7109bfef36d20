<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Exception\LeadIntakeException;
use LeadIntake\Exception\ProblemException;
use LeadIntake\Internal\Outcomes;
use LeadIntake\Internal\Silence;

/**
 * The human-readable reason why a lead is not delivered; the same in all languages. It contains none of the lead's data.
 *
 * @internal
 */
final class Reason
{
    private const MAX_CHARACTERS = 1000;

    /** The number of characters by which reasons are distinguished. */
    private const MARK = 4;

    private const UNANSWERED = 'no answer';

    /** Whether other leads would currently get the same response. */
    public static function isOfAll(string $reason): bool
    {
        $marks = [...Outcomes::CONFIGURATION_REASONS, ...Outcomes::PAUSE_REASONS];
        return in_array(substr($reason, 0, self::MARK), $marks, true);
    }

    /** Whether the service may be unavailable. */
    public static function isUnanswered(string $reason): bool
    {
        return str_starts_with($reason, self::UNANSWERED);
    }

    /**
     * Returns the condition of rows whose reason begins like one of these.
     *
     * @param list<string> $marks
     */
    public static function like(array $marks): string
    {
        return 'SUBSTR(reason, 1, ' . self::MARK . ") IN ('" . implode("', '", $marks) . "')";
    }

    /** `STATUS CODE: DETAIL [FIELDS] (request ID)`, `no answer: …`, or `wait asked for: …` by an intermediary. */
    public static function of(LeadIntakeException $error): string
    {
        if (!$error instanceof ProblemException) {
            $mark = match (true) {
                $error->retryAfterSeconds !== null => 'wait asked for',
                // Another web server, at a wrong address, answers 404 or 405.
                in_array($error->status, [404, 405], true) => "$error->status " . self::UNANSWERED,
                default => self::UNANSWERED,
            };
            return self::cut("$mark: " . Silence::why($error->getPrevious(), $error->status));
        }
        $fields = [];
        foreach ($error->fields as $name => $messages) {
            $fields[] = "$name: " . implode(', ', $messages);
        }
        $text = $error->detail ?? $error->title;
        $text .= $fields === [] ? '' : ' [' . implode('; ', $fields) . ']';
        return self::cut("$error->status $error->problemCode: $text (request $error->requestId)");
    }

    /** Returns ASCII, which a database of any encoding can store, up to the size of the column. */
    public static function cut(string $text): string
    {
        $printable = preg_replace(['/[^\x00-\x7f]+/', '/[\x00-\x1f\x7f]+/'], ['?', ' '], $text);
        return substr($printable, 0, self::MAX_CHARACTERS);
    }
}
