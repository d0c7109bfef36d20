<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\Contact;
use LeadIntake\LeadCapture;

/** Makes a lead, with one contact and one note for all other fields, from the fields of a form. */
final class Capture
{
    public const MOST_OF_NAME = 160;
    public const MOST_OF_NOTE = 2000;

    /** Replaces each byte that is not UTF-8 by U+FFFD. */
    public static function text(#[\SensitiveParameter] string $posted): string
    {
        return json_decode(json_encode($posted, JSON_INVALID_UTF8_SUBSTITUTE));
    }

    /** Returns the email address if there is one, else the phone number. */
    public static function contact(string $email, string $phone): Contact
    {
        return $email === '' && $phone !== '' ? Contact::phone($phone) : Contact::email($email);
    }

    /** Whether the service accepts the contact. */
    public static function isContact(Contact $contact): bool
    {
        return !isset((new LeadCapture('-', $contact))->faults()['contact.value']);
    }

    /** @param array<string, string> $lines by title; empty ones are left out */
    public static function note(string $message, array $lines): string
    {
        $lines = array_filter($lines, static fn (string $text): bool => trim($text) !== '');
        $texts = array_map(static fn (string $title, string $text): string => "$title: $text", array_keys($lines), $lines);
        $parts = [$message, implode("\n", $texts)];
        return implode("\n\n", array_filter($parts, static fn (string $part): bool => trim($part) !== ''));
    }
}
