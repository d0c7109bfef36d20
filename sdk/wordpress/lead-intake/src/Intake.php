<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\Outbox\Outbox;

/** Takes what visitors have sent by the forms of other plugins: stored within the request of the form, before its visitor is thanked. */
final class Intake
{
    /**
     * @param string $form such as `cf7:12`
     * @param array<string, string> $values what the visitor has entered, by field
     * @throws \Exception when it could not be stored
     */
    public static function receive(string $form, #[\SensitiveParameter] array $values): void
    {
        $mapping = Mapping::of($form);
        if ($mapping === null) {
            return;
        }
        $isHeld = Throttle::isExceeded();
        if (!$mapping->hasConsent($values)) {
            $isHeld || Submissions::add($form, null, Submissions::NO_CONSENT);
            return;
        }
        // First as it is: what no mapping can make a lead of is kept, too.
        $id = Submissions::add($form, $values, $isHeld ? Submissions::HELD : '');
        if (!$isHeld) {
            // A double click is one lead.
            self::store($id, $mapping, $form, $values, wp_salt() . $form);
            Delivery::deliverSoon();
        }
    }

    /**
     * Sends one again by its form's present mapping, in place of the lead that was not delivered, or beside the one that was. Does nothing where
     * it is no longer as it was read, such as where its lead was delivered or replaced meanwhile, or is being sent.
     *
     * @throws \Exception when the database fails: all is as before
     */
    public static function sendAgain(#[\SensitiveParameter] array $submission): void
    {
        $mapping = Mapping::of($submission['form']);
        if ($mapping === null) {
            return;
        }
        Outboxes::database()->atomically(static function () use ($mapping, $submission): void {
            ['id' => $id, 'form' => $form, 'key' => $key] = $submission;
            $isOpen = static fn (array $row): bool => in_array($row['state'], ['waiting', 'refused'], true);
            // So the outbox marks a lead from before its request until there is an outcome.
            $isInFlight = static fn (array $row): bool => $row['state'] === 'waiting' && $row['reason'] === null && $row['attempts'] > 0
                && $row['nextAttemptAt'] > microtime(true) * 1000;
            $now = Submissions::get((int) $id, 'FOR UPDATE');
            if (!isset($now['fields']) || $now['key'] !== $key || $isOpen($now) !== $isOpen($submission) || $isInFlight($now)) {
                return;
            }
            $isOpen($now) && Outboxes::own()->discard($key);
            // What a person sends again is another lead, also where it has the same data; the submissions of a double click stay one.
            $seed = wp_generate_uuid4();
            foreach ($isOpen($now) ? Submissions::sharing($form, $key) : [$now] as ['id' => $each, 'fields' => $values]) {
                self::store((int) $each, $mapping, $form, $values, $seed);
            }
        });
        Delivery::deliverSoon();
    }

    /** @param string $seed of which, and of the lead, its key is made */
    private static function store(int $id, Mapping $mapping, string $form, #[\SensitiveParameter] array $values, string $seed): void
    {
        [$lead, $fault] = $mapping->lead($values, FormPlugins::fields($form));
        Submissions::settle($id, $fault, $lead === null ? null : Outboxes::own()->add($lead, Outbox::keyFor($seed, $lead)));
    }
}
