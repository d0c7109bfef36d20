<?php

declare(strict_types=1);

namespace LeadIntake;

/** A finding about one part of a configuration. */
final class CheckFinding
{
    /**
     * @param string $about `address`, `key`, `leads.create`, `leads.read` or `clock`
     * @param string $verdict `right`, `wrong` or `unknown`
     * @param string $code for programs, such as `key_refused`
     * @param string $sentence for people, without the key and the address
     */
    public function __construct(
        public readonly string $about,
        public readonly string $verdict,
        public readonly string $code,
        public readonly string $sentence,
    ) {
    }
}
