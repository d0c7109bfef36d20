<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** The findings of a comparison of an outbox with the service, complete or so far. */
final class Reconciliation
{
    /**
     * @param ?string $stoppedBecause why it is not complete; null when it is. The next call continues where it stopped
     * @param ?\DateTimeImmutable $since when the oldest of the rows without data was settled; null when there are none. Older
     *     ones are deleted
     * @param int $sent leads that were delivered
     * @param int $there how many of these are there
     * @param int $alreadyOpen leads whose contact had an open lead of another creation
     * @param int $openLeadThere how many of those open leads are there
     * @param int $otherData how many of the leads that are there have other data than the outbox has kept
     * @param int $notRead leads that the service has failed to read, so that they may be there or not
     * @param int $withoutId leads without an id in the outbox: the API key could not read leads when they were sent
     * @param int $left leads still to compare
     * @param int $waiting leads that are not sent yet
     * @param int $refused leads that the service refused
     * @param list<Difference> $differences the first 100, newest leads first
     * @param int $requests the number of requests to the service
     * @param string $summary the numbers in plain sentences: `1,204 sent since 2026-10-28, 1,204 there.`
     */
    public function __construct(
        public readonly bool $isComplete,
        public readonly ?string $stoppedBecause,
        public readonly \DateTimeImmutable $startedAt,
        public readonly ?\DateTimeImmutable $since,
        public readonly int $sent,
        public readonly int $there,
        public readonly int $alreadyOpen,
        public readonly int $openLeadThere,
        public readonly int $otherData,
        public readonly int $notRead,
        public readonly int $withoutId,
        public readonly int $left,
        public readonly int $waiting,
        public readonly int $refused,
        public readonly array $differences,
        public readonly int $requests,
        public readonly string $summary,
    ) {
    }
}
