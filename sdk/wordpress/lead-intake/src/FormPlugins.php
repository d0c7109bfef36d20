<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/**
 * The plugins whose forms can be connected, by the hooks and functions that they document. The name of a form is its plugin and its id, such
 * as `cf7:12`. Each hook is called after the plugin's own checks, and before the visitor is thanked.
 */
final class FormPlugins
{
    private const TITLES = ['cf7' => 'Contact Form 7', 'fluent' => 'Fluent Forms', 'wpforms' => 'WPForms', 'gravity' => 'Gravity Forms'];

    private const MOST_FORMS = 1000;

    public static function register(): void
    {
        // Runs after hooks that end a submission, such as for a payment.
        add_action('wpcf7_before_send_mail', static function (object $form, mixed &$abort, object $submission): void {
            if (!$abort && !self::receive('cf7', $form->id(), (array) $submission->get_posted_data())) {
                $abort = true;
                $submission->set_response(self::refusal());
            }
        }, 20, 3);
        add_action('fluentform/submission_inserted', static function (mixed $id, mixed $values, object $form): void {
            self::receive('fluent', $form->id, (array) $values) || self::refuse();
        }, 10, 3);
        add_action('wpforms_process_complete', static function (mixed $fields, mixed $entry, array $form): void {
            // Like Gravity Forms, the plugin keeps spam in its own list.
            if (empty($form['spam_reason'])) {
                self::receive('wpforms', $form['id'], array_column((array) $fields, 'value', 'id')) || self::refuse();
            }
        }, 10, 3);
        add_action('gform_after_submission', static function (array $entry, array $form): void {
            $values = [];
            foreach ($entry as $name => $value) {
                // Names and addresses have parts such as 1.3.
                if (preg_match('/^(\d+)(?:\.\d+)?$/D', (string) $name, $found)) {
                    $values[$found[1]][] = $value;
                }
            }
            if (($entry['status'] ?? '') !== 'spam') {
                $texts = array_map(static fn (array $parts): string => self::text($parts, ' '), $values);
                self::receive('gravity', $form['id'], $texts) || self::refuse();
            }
        }, 10, 2);
    }

    /** @return array<string, array<string, string>> the titles of the forms, by the titles of the plugins that are active */
    public static function forms(): array
    {
        $forms = [];
        foreach (self::TITLES as $plugin => $title) {
            $titles = match (true) {
                !self::isActive($plugin) => [],
                $plugin === 'cf7' => array_column(array_map(static fn (object $form): array => [$form->id(), $form->title()], \WPCF7_ContactForm::find()), 1, 0),
                $plugin === 'fluent' => array_column(fluentFormApi('forms')->forms(['per_page' => self::MOST_FORMS])['data'] ?? [], 'title', 'id'),
                $plugin === 'wpforms' => array_column(get_posts(['post_type' => 'wpforms', 'numberposts' => self::MOST_FORMS]), 'post_title', 'ID'),
                $plugin === 'gravity' => array_column(\GFAPI::get_forms(), 'title', 'id'),
            };
            foreach ($titles as $id => $text) {
                $forms[$title]["$plugin:$id"] = (string) $text;
            }
        }
        return $forms;
    }

    /** @return array<int|string, string> the titles of a form's fields by their names; none of a plugin that is not active */
    public static function fields(string $form): array
    {
        [$plugin, $id] = explode(':', "$form:");
        $fields = match (self::isActive($plugin) ? $plugin : '') {
            'cf7' => array_column((\WPCF7_ContactForm::get_instance((int) $id) ?: null)?->scan_form_tags() ?? [], 'name', 'name'),
            'fluent' => ($found = fluentFormApi('forms')->find((int) $id)) ? fluentFormApi('forms')->form($found)->labels() : [],
            'wpforms' => array_column(wpforms_decode((string) get_post_field('post_content', (int) $id))['fields'] ?? [], 'label', 'id'),
            'gravity' => array_column((\GFAPI::get_form((int) $id) ?: [])['fields'] ?? [], 'label', 'id'),
            default => [],
        };
        return array_filter(array_map(strval(...), $fields), static fn (int|string $name): bool => $name !== '', ARRAY_FILTER_USE_KEY);
    }

    public static function refusal(): string
    {
        return __('That could not be stored. Please send it again later.', 'lead-intake');
    }

    /** Ends the request instead of thanking the visitor, if the plugin offers no other way. */
    private static function refuse(): never
    {
        wp_die(esc_html(self::refusal()), '', ['response' => 500]);
    }

    private static function isActive(string $plugin): bool
    {
        return match ($plugin) {
            'cf7' => class_exists('WPCF7_ContactForm'),
            'fluent' => function_exists('fluentFormApi'),
            'wpforms' => function_exists('wpforms_decode'),
            'gravity' => class_exists('GFAPI'),
            default => false,
        };
    }

    /** @return bool whether it is stored, or need not be */
    private static function receive(string $plugin, int|string $form, #[\SensitiveParameter] array $values): bool
    {
        // Names of fields that a plugin adds for itself begin with _.
        $own = array_filter($values, static fn (int|string $name): bool => !str_starts_with((string) $name, '_'), ARRAY_FILTER_USE_KEY);
        try {
            Intake::receive("$plugin:$form", array_map(self::text(...), $own));
            return true;
        } catch (\Exception $error) {
            // The message contains none of the visitor's data.
            error_log("Lead Intake: a submission could not be stored: {$error->getMessage()}");
            return false;
        }
    }

    /** Joins the parts of a field, such as several choices or the parts of a name, into one text. */
    private static function text(#[\SensitiveParameter] mixed $value, ?string $between = null): string
    {
        $parts = array_map(static fn (mixed $part): string => is_scalar($part) ? (string) $part : '', (array) $value);
        $between ??= array_is_list($parts) ? ', ' : ' ';
        return Capture::text(implode($between, array_filter($parts, static fn (string $part): bool => $part !== '')));
    }
}
