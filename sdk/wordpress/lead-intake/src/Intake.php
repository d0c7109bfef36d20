<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\Outbox\Outbox;
use LeadIntake\Outbox\OutboxException;

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
        if (!$mapping->hasConsent($values)) {
            Submissions::add($form, null, Submissions::NO_CONSENT);
            return;
        }
        // First as it is: what no mapping can make a lead of is kept, too.
        $isHeld = Throttle::isExceeded();
        $id = Submissions::add($form, $values, $isHeld ? Submissions::HELD : '');
        if (!$isHeld) {
            self::store($id, $mapping, $form, $values, isFirst: true);
        }
    }

    /** Sends one again by its form's present mapping, in place of the lead that was not delivered, or beside the one that was. */
    public static function sendAgain(#[\SensitiveParameter] array $submission): void
    {
        ['id' => $id, 'form' => $form, 'fields' => $fields, 'key' => $key] = $submission;
        $mapping = Mapping::of($form);
        if ($fields === null || $mapping === null) {
            return;
        }
        if (in_array($submission['state'], ['waiting', 'refused'], true)) {
            try {
                Outboxes::own()->discard($key);
            } catch (OutboxException) {
                // It was delivered meanwhile.
            }
        }
        self::store((int) $id, $mapping, $form, $fields, isFirst: false);
    }

    private static function store(int $id, Mapping $mapping, string $form, #[\SensitiveParameter] array $values, bool $isFirst): void
    {
        [$lead, $fault] = $mapping->lead($values, FormPlugins::fields($form));
        if ($lead === null) {
            Submissions::settle($id, $fault, null);
            return;
        }
        // A double click is one lead; what a person sends again is another one, also where the lead is the same.
        $key = Outboxes::own()->add($lead, $isFirst ? Outbox::keyFor(wp_salt() . $form, $lead) : null);
        Submissions::settle($id, $fault, $key);
        Delivery::deliverSoon();
    }
}
