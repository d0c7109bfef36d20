<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\LeadCapture;

/**
 * The shortcode `[lead_intake_form]`: a form that works without JavaScript and on cached pages, because it contains nothing specific to
 * a visitor. It therefore has no nonce: on a cached page it would be out of date, and it would protect nothing, as anyone may submit.
 */
final class Form
{
    private const FIELD = 'lead_intake';
    private const SENT = 'lead-intake-sent';
    private const FIELDS = ['name', 'email', 'phone', 'note'];
    private const MOST_OF_PHONE = 64;

    /** Nobody fills in a form faster: seconds. On a cached page the time since it was made is longer than that. */
    private const LEAST_SECONDS = 2;

    /** @var array<string, string> what the visitor entered, when it was not accepted */
    private static array $entered = [];
    private static string $fault = '';

    public static function register(): void
    {
        add_shortcode('lead_intake_form', self::html(...));
        add_action('template_redirect', self::receive(...));
    }

    /** Handles a form submitted to its own page, and redirects to that page, so that reloading does not submit it again. */
    private static function receive(): void
    {
        if (isset($_GET[self::SENT]) || isset($_POST[self::FIELD])) {
            // A cache would thank visitors who have sent nothing.
            nocache_headers();
        }
        if (!isset($_POST[self::FIELD])) {
            return;
        }
        self::$entered = array_map(Capture::text(...), array_filter((array) wp_unslash($_POST[self::FIELD]), is_string(...)));
        [$status, self::$fault] = self::store();
        if (self::$fault === '') {
            wp_safe_redirect(add_query_arg(self::SENT, '1'), 303);
            exit;
        }
        status_header($status);
    }

    /** @return array{int, string} the status, and what is wrong; empty: it is stored */
    private static function store(): array
    {
        $form = self::opened(self::$entered['form'] ?? '');
        $isHuman = $form !== null && (self::$entered['website'] ?? '') === ''
            && time() - $form['at'] >= (int) apply_filters('lead_intake_least_seconds', self::LEAST_SECONDS)
            && apply_filters('lead_intake_is_human', true, self::$entered);
        if (!$isHuman) {
            // A person sends it again: nothing is taken for a bot's without a word.
            return [422, __('Please send it once more.', 'lead-intake')];
        }
        ['fields' => $fields, 'source' => $source, 'consent' => $consent] = $form;
        $texts = array_intersect_key(self::$entered, array_flip($fields)) + array_fill_keys(self::FIELDS, '');
        [$email, $phone] = [trim($texts['email']), trim($texts['phone'])];
        $contact = Capture::contact($email, $phone);
        $capture = new LeadCapture(
            in_array('name', $fields, true) ? trim($texts['name']) : $contact->value,
            $contact,
            $source === '' ? null : $source,
            Capture::note($texts['note'], self::lines($contact->value === $phone ? '' : $phone, $consent)),
        );
        if ($consent !== '' && !isset(self::$entered['consent'])) {
            return [422, __('Please agree, or nothing may be sent.', 'lead-intake')];
        }
        $fault = self::faultOf($capture, $fields, $consent);
        if ($fault !== '') {
            return [422, $fault];
        }
        if (Throttle::isExceeded()) {
            return [429, __('Too much was sent from your network. Please send it again in an hour.', 'lead-intake')];
        }
        try {
            Delivery::store($capture);
        } catch (\Exception $error) {
            // The message contains none of the visitor's data.
            error_log("Lead Intake: a lead could not be stored: {$error->getMessage()}");
            return [500, FormPlugins::refusal()];
        }
        return [303, ''];
    }

    /** @return array<string, string> what a lead has no field for */
    private static function lines(string $phone, string $consent): array
    {
        return [__('Phone', 'lead-intake') => $phone, __('Consent', 'lead-intake') => $consent];
    }

    /** What the service would refuse is said before anybody is thanked. */
    private static function faultOf(LeadCapture $capture, array $fields, string $consent): string
    {
        return match (array_key_first($capture->faults())) {
            null => '',
            'displayName' => __('Please enter your name, of up to 160 characters.', 'lead-intake'),
            // Who has entered both learns which of them is wrong.
            'contact.value' => match ($capture->contact->value === '' ? array_values(array_intersect(['email', 'phone'], $fields)) : [$capture->contact->type]) {
                ['email'] => __('Please enter your email address.', 'lead-intake'),
                ['phone'] => __('Please enter your phone number.', 'lead-intake'),
                default => __('Please enter your email address or your phone number.', 'lead-intake'),
            },
            /* translators: %s: number of characters */
            'note' => sprintf(__('Please write a message of up to %s characters.', 'lead-intake'), number_format_i18n(self::mostOfNote($fields, $consent))),
            // An administrator has entered a source that is none.
            default => FormPlugins::refusal(),
        };
    }

    private static function mostOfNote(array $fields, string $consent): int
    {
        $phone = array_diff(['email', 'phone'], $fields) === [] ? str_repeat('0', self::MOST_OF_PHONE) : '';
        return Capture::MOST_OF_NOTE + 1 - mb_strlen(Capture::note('-', self::lines($phone, $consent)));
    }

    /**
     * Posts to the address of the page, whatever page that is. The email's field is no `type="email"`, for which browsers refuse
     * `jörg@müller.de`.
     *
     * @param array<string, string>|string $attributes `fields`, of name, email, phone and note; `source`, the id of a lead source; `consent`,
     *     what a visitor has to agree to
     */
    private static function html(array|string $attributes): string
    {
        if (isset($_GET[self::SENT])) {
            return '<p role="status">' . esc_html__('Thank you. We will be in touch.', 'lead-intake') . '</p>';
        }
        $form = shortcode_atts(['fields' => 'name email note', 'source' => '', 'consent' => ''], (array) $attributes);
        $fields = array_values(array_intersect(self::FIELDS, preg_split('/[\s,]+/', $form['fields'])));
        $form['fields'] = array_intersect(['email', 'phone'], $fields) === [] ? [...$fields, 'email'] : $fields;
        $hasBoth = array_diff(['email', 'phone'], $fields) === [];
        $inputs = [
            'name' => [__('Name', 'lead-intake'), 'maxlength="160" autocomplete="name" required'],
            'email' => [__('Email', 'lead-intake'), 'inputmode="email" maxlength="254" autocomplete="email"' . ($hasBoth ? '' : ' required')],
            'phone' => [__('Phone', 'lead-intake'), 'inputmode="tel" maxlength="' . self::MOST_OF_PHONE . '" autocomplete="tel"' . ($hasBoth ? '' : ' required')],
        ];
        $html = '<form class="lead-intake" method="post">';
        $html .= self::$fault === '' ? '' : '<p role="alert">' . esc_html(self::$fault) . '</p>';
        $html .= '<input type="hidden" name="lead_intake[form]" value="' . self::encoded(self::sealed($form)) . '">';
        foreach ($form['fields'] as $field) {
            [$title, $more] = $inputs[$field] ?? [__('Message', 'lead-intake'), ''];
            $entered = self::encoded(self::$entered[$field] ?? '');
            $html .= '<p><label>' . esc_html($title) . '<br>';
            $html .= $field === 'note'
                ? '<textarea name="lead_intake[note]" rows="6" maxlength="' . self::mostOfNote($form['fields'], $form['consent']) . '">' . $entered . '</textarea>'
                : "<input name=\"lead_intake[$field]\" value=\"$entered\" $more>";
            $html .= '</label></p>';
        }
        if ($form['consent'] !== '') {
            $html .= '<p><label><input type="checkbox" name="lead_intake[consent]" value="1" required> ' . self::encoded($form['consent']) . '</label></p>';
        }
        // For bots, which fill in everything: people neither see nor reach it.
        $html .= '<p style="position:absolute;left:-10000px" aria-hidden="true"><label>' . esc_html__('Leave this empty', 'lead-intake')
            . '<input name="lead_intake[website]" type="url" tabindex="-1" autocomplete="off"></label></p>';
        return $html . '<p><button>' . esc_html__('Send', 'lead-intake') . '</button></p></form>';
    }

    /** Returns what the shortcode says, and the time, so that no visitor can change it. */
    private static function sealed(array $form): string
    {
        $json = wp_json_encode($form + ['at' => time()]);
        return base64_encode($json) . '.' . hash_hmac('sha256', $json, wp_salt());
    }

    /** @return ?array{fields: list<string>, source: string, consent: string, at: int} null: it is not of this website */
    private static function opened(string $sealed): ?array
    {
        [$json, $hash] = explode('.', "$sealed.");
        $json = (string) base64_decode($json, true);
        return hash_equals(hash_hmac('sha256', $json, wp_salt()), $hash) ? json_decode($json, true) : null;
    }

    /** Returns HTML with numbers for characters: themes apply shortcodes, and put in other quotation marks, in the whole page. */
    private static function encoded(string $text): string
    {
        return preg_replace_callback('/[!-~]/', static fn (array $found): string => '&#' . ord($found[0]) . ';', $text);
    }
}
