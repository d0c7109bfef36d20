<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/** Settings › Lead forms: connects forms, maps their fields, and shows the latest submissions. */
final class FormsPage
{
    private const PAGE = 'lead-intake-forms';
    private const MAP = 'lead_intake_map';
    private const SUBMISSION = 'lead_intake_submission';
    private const SEND_ALL = 'lead_intake_send_all';

    public static function register(): void
    {
        add_action('admin_menu', static function (): void {
            $title = __('Lead forms', 'lead-intake');
            add_options_page($title, $title, Action::CAPABILITY, self::PAGE, self::show(...));
        });
        Action::on(self::MAP, static function (string $form): string {
            $fault = Mapping::store($form, wp_unslash($_POST['mapping'] ?? null));
            return Action::said(self::url($form), $fault ?? __('The fields are saved.', 'lead-intake'), $fault === null);
        });
        Action::on(self::SUBMISSION, static function (string $id): string {
            $submission = Submissions::get((int) $id);
            if ($submission !== null) {
                isset($_POST['erase']) ? Submissions::erase((int) $id) : Intake::sendAgain($submission);
            }
            return self::url($submission['form'] ?? '');
        });
        Action::on(self::SEND_ALL, static function (string $form): string {
            isset($_POST['erase']) ? Submissions::eraseHeld($form) : array_map(Intake::sendAgain(...), Submissions::undelivered($form));
            return self::url($form);
        });
    }

    public static function url(string $form = ''): string
    {
        return admin_url('options-general.php?page=' . self::PAGE . ($form === '' ? '' : '&form=' . rawurlencode($form)));
    }

    private static function show(): void
    {
        $forms = FormPlugins::forms();
        $known = array_merge([], ...array_values($forms));
        $form = is_string($_GET['form'] ?? null) ? wp_unslash($_GET['form']) : (string) array_key_first(Mapping::all() + $known);
        Action::openPage(__('Lead forms', 'lead-intake'));
        if ($known === []) {
            $text = __('There is no form of Contact Form 7, Fluent Forms, WPForms or Gravity Forms. The shortcode [lead_intake_form] needs none of them.', 'lead-intake');
            echo '<p>' . esc_html($text) . '</p>';
        } else {
            self::showForms($forms, $form);
        }
        if (isset($known[$form])) {
            echo '<h2>' . esc_html($known[$form]) . '</h2>';
            self::showMapping($form, FormPlugins::fields($form));
        }
        try {
            $form === '' || self::showSubmissions($form, Submissions::newest($form));
        } catch (\Exception) {
            // The notice above says that the database has failed.
        }
        echo '</div>';
    }

    /** @param array<string, array<string, string>> $forms */
    private static function showForms(array $forms, string $chosen): void
    {
        echo '<form method="get"><input type="hidden" name="page" value="' . esc_attr(self::PAGE) . '"><p>';
        echo '<label for="lead-intake-form">' . esc_html__('Form', 'lead-intake') . '</label> <select id="lead-intake-form" name="form">';
        foreach ($forms as $plugin => $titles) {
            echo '<optgroup label="' . esc_attr($plugin) . '">';
            array_map(Action::option(...), array_keys($titles), $titles, array_fill(0, count($titles), $chosen));
            echo '</optgroup>';
        }
        echo '</select> <button class="button">' . esc_html__('Choose', 'lead-intake') . '</button></p></form>';
    }

    /** @param array<string, string> $fields */
    private static function showMapping(string $form, array $fields): void
    {
        $stored = Mapping::of($form);
        $mapping = $stored ?? Mapping::guess($fields);
        $titles = [
            'email' => __('Email', 'lead-intake'),
            'phone' => __('Phone', 'lead-intake'),
            'name' => __('Name', 'lead-intake'),
            'note' => __('Message', 'lead-intake'),
            'consent' => __('Consent, without which nothing is sent or stored', 'lead-intake'),
        ];
        Action::open(self::MAP, $form);
        echo '<table class="form-table" role="presentation">';
        self::showCheckbox('connected', __('Send what visitors enter in this form', 'lead-intake'), $stored !== null);
        foreach (array_keys(Mapping::PARTS) as $part) {
            self::showRow($part, $titles[$part]);
            printf('<select id="lead-intake-%1$s" name="mapping[%1$s]">', esc_attr($part));
            Action::option('', '–', $mapping->fields[$part] ?? '');
            foreach ($fields as $field => $label) {
                Action::option((string) $field, $label, $mapping->fields[$part] ?? '');
            }
            echo '</select></td></tr>';
        }
        self::showRow('source', __('Source', 'lead-intake'));
        printf('<input id="lead-intake-source" name="mapping[source]" class="regular-text" maxlength="36" value="%s">', esc_attr($mapping->source));
        echo '<p class="description">' . esc_html__('The id of a lead source of the studio, or empty.', 'lead-intake') . '</p></td></tr>';
        self::showCheckbox('rest', __('Add all other fields to the message', 'lead-intake'), $mapping->hasRest);
        echo '</table>';
        submit_button();
        echo '</form>';
    }

    private static function showRow(string $part, string $title): void
    {
        printf('<tr><th scope="row"><label for="lead-intake-%s">%s</label></th><td>', esc_attr($part), esc_html($title));
    }

    private static function showCheckbox(string $name, string $title, bool $isChecked): void
    {
        printf(
            '<tr><th></th><td><label><input type="checkbox" name="mapping[%s]" value="1"%s> %s</label></td></tr>',
            esc_attr($name),
            checked($isChecked, true, false),
            esc_html($title),
        );
    }

    /** @param list<array<string, mixed>> $submissions */
    private static function showSubmissions(string $form, array $submissions): void
    {
        $isConnected = Mapping::of($form) !== null;
        echo '<h2>' . esc_html__('The latest submissions', 'lead-intake') . '</h2>';
        $outcome = __('Outcome', 'lead-intake');
        LeadsPage::openTable([__('Stored', 'lead-intake'), __('Fields', 'lead-intake'), $outcome, __('Actions', 'lead-intake')]);
        foreach ($submissions as $submission) {
            $fields = $submission['fields'] ?? [];
            $texts = array_map(static fn (int|string $name, string $text): string => "$name: $text", array_keys($fields), $fields);
            echo '<tr><td>' . esc_html((string) wp_date('Y-m-d H:i', (int) $submission['createdAt'])) . '</td>';
            echo '<td class="texts">' . esc_html(implode("\n", $texts)) . '</td><td class="texts">' . esc_html(self::outcome($submission)) . '</td><td>';
            if ($submission['fields'] !== null) {
                Action::open(self::SUBMISSION, $submission['id']);
                echo $isConnected ? '<button class="button" name="again">' . esc_html__('Send again', 'lead-intake') . '</button> ' : '';
                echo '<button class="button" name="erase">' . esc_html__('Erase', 'lead-intake') . '</button></form>';
            }
            echo '</td></tr>';
        }
        echo '</tbody></table>';
        if ($submissions !== []) {
            Action::open(self::SEND_ALL, $form);
            $isConnected && submit_button(__('Send all undelivered ones again', 'lead-intake'), 'secondary');
            echo '<button class="button" name="erase">' . esc_html__('Erase all that are held', 'lead-intake') . '</button></form>';
        }
    }

    /** @param array<string, mixed> $submission */
    private static function outcome(array $submission): string
    {
        $fault = match (true) {
            $submission['fault'] === Submissions::NO_CONSENT => __('The visitor has not agreed: nothing was sent or stored.', 'lead-intake'),
            $submission['fields'] === null => '',
            $submission['fault'] === Submissions::NO_CONTACT => __('No email address or phone number was found. Correct the fields, and send it again.', 'lead-intake'),
            $submission['fault'] === Submissions::HELD => __('Held: one network sent more than people do. Send it again if a person wrote it.', 'lead-intake'),
            $submission['fault'] === Submissions::CUT => __('It is longer than a lead can be, and was cut. Read it here, and erase it.', 'lead-intake'),
            $submission['key'] === null => __('It is stored, but was not sent.', 'lead-intake'),
            default => '',
        };
        $state = $submission['state'] === null ? '' : LeadsPage::stateText($submission['state']);
        return implode("\n", array_filter([$fault, $state, (string) $submission['reason'], (string) $submission['leadId']]));
    }
}
