<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * Recognizes exceptions of signal handlers, such as a job's time limit: they end any work in progress.
 *
 * @internal
 */
final class Signals
{
    /** Whether the handler of a signal has thrown it. */
    public static function haveThrown(\Throwable $error): bool
    {
        $places = [['file' => $error->getFile(), 'line' => $error->getLine()], ...$error->getTrace()];
        foreach (function_exists('pcntl_signal_get_handler') ? range(1, 31) : [] as $signal) {
            $handler = pcntl_signal_get_handler($signal);
            $code = is_callable($handler) ? new \ReflectionFunction($handler(...)) : null;
            foreach ($code === null ? [] : $places as $place) {
                $line = ($place['file'] ?? null) === $code->getFileName() ? $place['line'] : -1;
                if ($line >= $code->getStartLine() && $line <= $code->getEndLine()) {
                    return true;
                }
            }
        }
        return false;
    }
}
