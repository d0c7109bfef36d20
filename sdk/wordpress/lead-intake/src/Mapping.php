<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\Contact;
use LeadIntake\LeadCapture;

/** Maps the fields of a form to the parts of a lead. A form without a mapping is not connected. */
final class Mapping
{
    public const OPTION = 'lead_intake_forms';

    /** The parts of a lead that a form has fields for, with patterns for the names of such fields. */
    public const PARTS = ['email' => 'mail', 'phone' => 'phone|tel|mobil', 'name' => 'name|nom\b', 'note' => 'message|nachricht|comment|text', 'consent' => 'accept|consent|gdpr'];

    /**
     * @param array<string, string> $fields the name of the form's field by part
     * @param string $source the id of a lead source; empty: none
     * @param bool $hasRest whether all other fields are added to the note
     */
    private function __construct(public readonly array $fields, public readonly string $source, public readonly bool $hasRest)
    {
    }

    /** @param string $form such as `cf7:12` */
    public static function of(string $form): ?self
    {
        $stored = self::all()[$form] ?? null;
        return is_array($stored) ? self::from($stored) : null;
    }

    /** @return self a proposal for a form without a mapping, by the names of its fields */
    public static function guess(array $labels): self
    {
        $fields = [];
        foreach (self::PARTS as $part => $pattern) {
            foreach ($labels as $field => $label) {
                if (!in_array((string) $field, $fields, true) && preg_match("/$pattern/i", "$field $label")) {
                    $fields[$part] = (string) $field;
                    break;
                }
            }
        }
        return new self($fields, '', true);
    }

    /** @return ?string the fault of the form that an administrator has sent; null: it is stored */
    public static function store(string $form, mixed $posted): ?string
    {
        $posted = is_array($posted) ? $posted : [];
        $mapping = self::from($posted);
        if (isset($posted['connected']) && !isset($mapping->fields['email']) && !isset($mapping->fields['phone'])) {
            return __('Choose the field of the email address or of the phone number.', 'lead-intake');
        }
        if (!self::isSource($mapping->source)) {
            return __('The source must be its id, a UUID with hyphens, or empty.', 'lead-intake');
        }
        $connected = isset($posted['connected']) ? [$form => $mapping->fields + ['source' => $mapping->source, 'rest' => $mapping->hasRest ? '1' : '']] : [];
        // Not autoloaded with every page.
        update_option(self::OPTION, $connected + array_diff_key(self::all(), [$form => 0]), false);
        return null;
    }

    /** Whether a text is empty or the id of a source. */
    public static function isSource(string $source): bool
    {
        return (new LeadCapture('-', Capture::contact('a@b', ''), $source === '' ? null : $source))->faults() === [];
    }

    /** @param array<string, string> $values the visitor's texts, by field */
    public function hasConsent(#[\SensitiveParameter] array $values): bool
    {
        $field = $this->fields['consent'] ?? null;
        return $field === null || !in_array(trim($values[$field] ?? ''), ['', '0', 'off', 'false'], true);
    }

    /**
     * Returns the lead of a submission.
     *
     * @param array<string, string> $values the visitor's texts, by field
     * @param array<string, string> $labels the titles of the fields
     * @return array{?LeadCapture, string} without a lead if there is no contact; and a fault of Submissions, or an empty text
     */
    public function lead(#[\SensitiveParameter] array $values, array $labels): array
    {
        // A line break is posted as two characters; browsers and the service count one.
        $values = str_replace(["\0", "\r\n", "\r"], ['', "\n", "\n"], $values);
        $part = fn (string $part): string => trim($values[$this->fields[$part] ?? ''] ?? '');
        $contacts = array_filter([Contact::email($part('email')), Contact::phone($part('phone'))], Capture::isContact(...));
        if ($contacts === []) {
            return [null, Submissions::NO_CONTACT];
        }
        $contact = reset($contacts);
        // A lead has one contact: the other one stays in the note.
        $others = array_intersect_key($this->fields, ['email' => 0, 'phone' => 0]);
        $rest = $this->hasRest ? array_diff(array_map(strval(...), array_keys($values)), $this->fields) : [];
        $lines = [];
        foreach ([...array_values($others), ...$rest] as $field) {
            $text = trim($values[$field] ?? '');
            if ($text !== $contact->value) {
                $lines[$labels[$field] ?? $field] = $text;
            }
        }
        $note = Capture::note($part('note'), $lines);
        $name = $part('name') === '' ? $contact->value : $part('name');
        $lead = new LeadCapture(
            mb_substr($name, 0, Capture::MOST_OF_NAME),
            $contact,
            $this->source === '' ? null : $this->source,
            mb_substr($note, 0, Capture::MOST_OF_NOTE),
        );
        $isCut = mb_strlen($note) > Capture::MOST_OF_NOTE || mb_strlen($name) > Capture::MOST_OF_NAME;
        return [$lead, $isCut ? Submissions::CUT : ''];
    }

    /** @return array<string, mixed> */
    public static function all(): array
    {
        $stored = get_option(self::OPTION);
        return is_array($stored) ? $stored : [];
    }

    private static function from(array $stored): self
    {
        $texts = array_map(trim(...), array_filter($stored, is_string(...)));
        $fields = array_filter(array_intersect_key($texts, self::PARTS), static fn (string $field): bool => $field !== '');
        return new self($fields, $texts['source'] ?? '', ($texts['rest'] ?? '') !== '');
    }
}
