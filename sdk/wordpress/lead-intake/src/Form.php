<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\LeadCapture;

/**
 * The shortcode `[lead_intake_form]`: a form that works without JavaScript and on cached pages, because it contains nothing specific to
 * a visitor. It has no nonce: a cached page would have an outdated one, and it would protect nothing, because anyone may submit.
 */
final class Form
{
    private const FIELD = 'lead_intake';
    private const SENT = 'lead-intake-sent';
    private const FIELDS = ['name', 'email', 'phone', 'note'];
    public const MOST_OF_PHONE = 64;

    /** The minimum time in which a person fills in a form. A cached page is usually older. */
    private const LEAST_SECONDS = 2;

    /** @var array<string, string> the visitor's texts, when they were not accepted */
    private static array $entered = [];
    /** @var array<string, string> their faults, by field; '': those of the form */
    private static array $faults = [];
    /** The form that the visitor sent; null: unknown. */
    private static ?array $sent = null;
    private static bool $isShown = false;
    /** @var list<array{post: int, number: int}> the posts that are being rendered, 0 for none, and how many forms each has so far */
    private static array $texts = [['post' => 0, 'number' => 0]];

    public static function register(): void
    {
        add_shortcode('lead_intake_form', self::html(...));
        add_action('template_redirect', self::receive(...));
        // Plugins render a text several times, for example as a description. Its forms get the same numbers each time.
        add_filter('the_content', static function (mixed $text): mixed {
            self::$texts[] = ['post' => (int) get_the_ID(), 'number' => 0];
            return $text;
        }, 0);
        add_filter('the_content', static function (mixed $text): mixed {
            count(self::$texts) > 1 && array_pop(self::$texts);
            return $text;
        }, PHP_INT_MAX);
    }

    /** Handles a form submitted to its own page, and redirects to that page, so that reloading does not submit it again. */
    private static function receive(): void
    {
        if (isset($_GET[self::SENT]) || isset($_POST[self::FIELD])) {
            // From a cache, the page would thank visitors who have sent nothing.
            nocache_headers();
        }
        if (!isset($_POST[self::FIELD])) {
            return;
        }
        self::$entered = array_map(Capture::text(...), array_filter((array) wp_unslash($_POST[self::FIELD]), is_string(...)));
        self::$sent = self::opened(self::$entered['form'] ?? '');
        [$status, self::$faults] = self::store(self::$sent);
        if (self::$faults === []) {
            wp_safe_redirect(add_query_arg(self::SENT, '1'), 303);
            exit;
        }
        status_header($status);
        // The page may no longer have this form. The footer is the latest place where WordPress still adds its stylesheet.
        add_action('wp_footer', static fn () => self::$isShown || self::$sent === null || print self::shown(self::$sent), 19);
    }

    /** @return array{int, array<string, string>} the status, and the faults; empty: it is stored */
    private static function store(?array $form): array
    {
        $isHuman = $form !== null && (self::$entered['website'] ?? '') === ''
            && time() - $form['at'] >= (int) apply_filters('lead_intake_least_seconds', self::LEAST_SECONDS)
            && apply_filters('lead_intake_is_human', true, self::$entered);
        if (!$isHuman) {
            // The plugin drops nothing silently: a person can send it again.
            return [422, ['' => __('Please send it once more.', 'lead-intake')]];
        }
        ['fields' => $fields, 'source' => $source, 'consent' => $consent] = $form;
        $texts = array_intersect_key(self::$entered, array_flip($fields)) + array_fill_keys(self::FIELDS, '');
        [$email, $phone] = [trim($texts['email']), trim($texts['phone'])];
        $contact = Capture::contact($email, $phone);
        $capture = new LeadCapture(
            // Without a field for the name, the contact is the name. `-` keeps a wrong contact from causing a second fault.
            in_array('name', $fields, true) ? trim($texts['name']) : (Capture::isContact($contact) ? mb_substr($contact->value, 0, Capture::MOST_OF_NAME) : '-'),
            $contact,
            $source === '' ? null : $source,
            Capture::note($texts['note'], self::lines($contact->value === $phone ? '' : $phone, $consent)),
        );
        $faults = self::faultsOf($capture, $fields, $consent);
        if ($faults !== []) {
            return [422, $faults];
        }
        if (Throttle::isExceeded()) {
            return [429, ['' => __('Too much was sent from your network. Please send it again in an hour.', 'lead-intake')]];
        }
        try {
            Delivery::store($capture);
        } catch (\Exception $error) {
            // The message contains none of the visitor's data.
            error_log("Lead Intake: a lead could not be stored: {$error->getMessage()}");
            return [500, ['' => FormPlugins::refusal()]];
        }
        return [303, []];
    }

    /** @return array<string, string> the texts for which a lead has no field */
    private static function lines(string $phone, string $consent): array
    {
        return [__('Phone', 'lead-intake') => $phone, __('Consent', 'lead-intake') => $consent];
    }

    /** @return array<string, string> the faults by field: those that the service would find, and a missing consent */
    private static function faultsOf(LeadCapture $capture, array $fields, string $consent): array
    {
        [$type, $value] = [$capture->contact->type, $capture->contact->value];
        // A visitor who has entered both learns which of them is wrong.
        $contacts = $value === '' ? array_values(array_intersect(['email', 'phone'], $fields)) : [$type];
        $texts = [
            'displayName' => ['name', mb_strlen($capture->displayName) > Capture::MOST_OF_NAME
                ? __('Your name may have up to 160 characters.', 'lead-intake')
                : __('Please enter your name.', 'lead-intake')],
            'contact.value' => [$contacts[0], match (true) {
                $value !== '' && $type === 'email' => __('This is not an email address.', 'lead-intake'),
                $value !== '' => __('This is not a phone number.', 'lead-intake'),
                $contacts === ['email'] => __('Please enter your email address.', 'lead-intake'),
                $contacts === ['phone'] => __('Please enter your phone number.', 'lead-intake'),
                default => __('Please enter your email address or your phone number.', 'lead-intake'),
            }],
            /* translators: %s: number of characters */
            'note' => ['note', sprintf(__('Please write a message of up to %s characters.', 'lead-intake'), number_format_i18n(self::mostOfNote($fields, $consent)))],
        ];
        $hasConsent = $consent === '' || isset(self::$entered['consent']);
        $faults = $hasConsent ? [] : ['consent' => __('Please agree, or nothing may be sent.', 'lead-intake')];
        foreach (array_intersect_key($texts + ['sourceId' => ['', '']], $capture->faults()) as [$field, $text]) {
            // A fault without a field is the administrator's: a malformed source, or a consent that is too long.
            $faults += in_array($field, $fields, true) ? [$field => $text] : ['' => FormPlugins::refusal()];
        }
        return $faults;
    }

    public static function mostOfNote(array $fields, string $consent): int
    {
        $phone = array_diff(['email', 'phone'], $fields) === [] ? str_repeat('0', self::MOST_OF_PHONE) : '';
        return Capture::MOST_OF_NOTE + 1 - mb_strlen(Capture::note('-', self::lines($phone, $consent)));
    }

    /**
     * @param array<string, string>|string $attributes `fields`: some of name, email, phone and note; `source`: the id of a lead source;
     *     `consent`: the text that a visitor has to agree to
     */
    private static function html(array|string $attributes): string
    {
        if (isset($_GET[self::SENT]) && self::$faults === []) {
            return '<p class="lead-intake__thanks" role="status">' . esc_html__('Thank you. We will be in touch.', 'lead-intake') . '</p>';
        }
        $form = shortcode_atts(['fields' => 'name email note', 'source' => '', 'consent' => ''], (array) $attributes);
        $fields = array_values(array_intersect(self::FIELDS, preg_split('/[\s,]+/', $form['fields'])));
        $form['fields'] = array_intersect(['email', 'phone'], $fields) === [] ? [...$fields, 'email'] : $fields;
        // WordPress stores `&` as `&amp;` for authors who may not write unfiltered HTML.
        $form['consent'] = html_entity_decode($form['consent'], ENT_QUOTES | ENT_HTML5);
        $text = array_key_last(self::$texts);
        self::$texts[$text]['number'] += 1;
        return self::shown($form + self::$texts[$text]);
    }

    /** Returns the form, with the visitor's texts if it is the one that was sent. Forms of earlier releases have no post and no number. */
    private static function shown(array $form): string
    {
        $isSent = self::$faults !== [] && (self::$sent === null || self::$sent + $form == $form + self::$sent);
        self::$isShown = self::$isShown || $isSent;
        return FormHtml::of($form, self::sealed($form), $isSent ? self::$entered : [], $isSent ? self::$faults : []);
    }

    /** Returns the shortcode's settings and the time with a hash, so that no visitor can change them. */
    private static function sealed(array $form): string
    {
        $json = wp_json_encode(['at' => time()] + $form);
        return base64_encode($json) . '.' . hash_hmac('sha256', $json, wp_salt());
    }

    /** @return ?array{fields: list<string>, source: string, consent: string, post?: int, number?: int, at: int} null: it is not from this website */
    private static function opened(string $sealed): ?array
    {
        [$json, $hash] = explode('.', "$sealed.");
        $json = (string) base64_decode($json, true);
        return hash_equals(hash_hmac('sha256', $json, wp_salt()), $hash) ? json_decode($json, true) : null;
    }
}
