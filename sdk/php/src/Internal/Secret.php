<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

/**
 * A value that no dump, trace, export or serialization of an object shows.
 *
 * @internal
 */
final class Secret
{
    /** Stored outside the object, because dumps show an object's properties and the variables of its closures. */
    private static ?\WeakMap $values = null;

    public function __construct(#[\SensitiveParameter] mixed $value)
    {
        self::$values ??= new \WeakMap();
        self::$values[$this] = $value;
    }

    public function reveal(): mixed
    {
        return self::$values[$this] ?? throw new \LogicException('a secret cannot be copied');
    }
}
