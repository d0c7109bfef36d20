<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\Outbox\Outbox;

/** Stores submissions to the forms of other plugins, within the request of the form and before its visitor is thanked. */
final class Intake
{
    /**
     * @param string $form such as `cf7:12`
     * @param array<string, string> $values the visitor's texts, by field
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
        // The submission is stored first, so that it is kept even if no mapping makes a lead from it.
        $id = Submissions::add($form, $values, $isHeld ? Submissions::HELD : '');
        if (!$isHeld) {
            // A double click is one lead.
            self::store($id, $mapping, $form, $values, wp_salt() . $form);
            Delivery::deliverSoon();
        }
    }

    /**
     * Sends a submission again by its form's present mapping. The new lead replaces one that was not delivered; a delivered one stays.
     * Does nothing if the submission changed since it was read: its lead was delivered or replaced, or is being sent.
     *
     * @throws \Exception when the database fails; nothing is changed then
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
            // A leased lead looks like this, until the outcome of its request is stored.
            $isInFlight = static fn (array $row): bool => $row['state'] === 'waiting' && $row['reason'] === null && $row['attempts'] > 0
                && $row['nextAttemptAt'] > microtime(true) * 1000;
            $now = Submissions::get((int) $id, 'FOR UPDATE');
            if (!isset($now['fields']) || $now['key'] !== $key || $isOpen($now) !== $isOpen($submission) || $isInFlight($now)) {
                return;
            }
            $isOpen($now) && Outboxes::own()->discard($key);
            // A lead that a person sends again is another one, even with the same data. The submissions of a double click stay one lead.
            $seed = wp_generate_uuid4();
            foreach ($isOpen($now) ? Submissions::sharing($form, $key) : [$now] as ['id' => $each, 'fields' => $values]) {
                self::store((int) $each, $mapping, $form, $values, $seed);
            }
        });
        Delivery::deliverSoon();
    }

    /** @param string $seed the lead's key is derived from this and its data */
    private static function store(int $id, Mapping $mapping, string $form, #[\SensitiveParameter] array $values, string $seed): void
    {
        [$lead, $fault] = $mapping->lead($values, FormPlugins::fields($form));
        Submissions::settle($id, $fault, $lead === null ? null : Outboxes::own()->add($lead, Outbox::keyFor($seed, $lead)));
    }
}
