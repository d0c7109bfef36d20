<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

use LeadIntake\Contact;
use LeadIntake\LeadCapture;

/**
 * The shortcode `[lead_intake_form]`: a form that works without JavaScript and on cached pages, because it contains nothing specific to
 * a visitor. It therefore has no nonce: on a cached page it would be out of date, and it would protect nothing, as anyone may submit.
 */
final class Form
{
    private const FIELD = 'lead_intake';
    private const SENT = 'lead-intake-sent';
    private const MAX_NAME = 160;
    private const MAX_EMAIL = 254;
    private const MAX_NOTE = 2000;

    /** @var array{name?: string, email?: string, note?: string} the visitor's input when it was not accepted */
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
        if (!isset($_POST[self::FIELD])) {
            return;
        }
        nocache_headers();
        $field = static fn (string $name): string => trim((string) (wp_unslash((array) $_POST[self::FIELD])[$name] ?? ''));
        // Browsers send line breaks as \r\n.
        $note = str_replace("\r\n", "\n", $field('note'));
        self::$entered = ['name' => $field('name'), 'email' => $field('email'), 'note' => $note];
        self::$fault = self::faultOf(self::$entered);
        if (self::$fault !== '') {
            status_header(422);
            return;
        }
        $contact = Contact::email(self::$entered['email']);
        try {
            Delivery::store(new LeadCapture(self::$entered['name'], $contact, note: $note === '' ? null : $note));
        } catch (\Exception $error) {
            // The message contains none of the visitor's data.
            error_log("Lead Intake: a lead could not be stored: {$error->getMessage()}");
            self::$fault = __('That could not be stored. Please send it again later.', 'lead-intake');
            status_header(500);
            return;
        }
        wp_safe_redirect(add_query_arg(self::SENT, '1', get_permalink()), 303);
        exit;
    }

    /** @param array{name: string, email: string, note: string} $entered */
    private static function faultOf(array $entered): string
    {
        ['name' => $name, 'email' => $email, 'note' => $note] = $entered;
        return match (true) {
            preg_match('//u', $name . $email . $note) !== 1 => __('That has characters that are no text.', 'lead-intake'),
            $name === '' || mb_strlen($name) > self::MAX_NAME => __('Please enter your name.', 'lead-intake'),
            !is_email($email) || strlen($email) > self::MAX_EMAIL => __('Please enter your e-mail address.', 'lead-intake'),
            mb_strlen($note) > self::MAX_NOTE => __('Please write a shorter message.', 'lead-intake'),
            default => '',
        };
    }

    private static function html(): string
    {
        if (isset($_GET[self::SENT])) {
            return '<p role="status">' . esc_html__('Thank you. We will be in touch.', 'lead-intake') . '</p>';
        }
        $name = static fn (string $field): string => esc_attr(self::FIELD . "[$field]");
        $value = static fn (string $field): string => self::$entered[$field] ?? '';
        ob_start();
        ?>
        <form class="lead-intake" method="post" action="<?php echo esc_url(get_permalink()); ?>">
            <?php if (self::$fault !== '') : ?>
                <p role="alert"><?php echo esc_html(self::$fault); ?></p>
            <?php endif; ?>
            <p><label><?php esc_html_e('Name', 'lead-intake'); ?><br>
                <input name="<?php echo $name('name'); ?>" value="<?php echo esc_attr($value('name')); ?>"
                    maxlength="<?php echo self::MAX_NAME; ?>" autocomplete="name" required></label></p>
            <p><label><?php esc_html_e('E-mail', 'lead-intake'); ?><br>
                <input name="<?php echo $name('email'); ?>" value="<?php echo esc_attr($value('email')); ?>" type="email"
                    maxlength="<?php echo self::MAX_EMAIL; ?>" autocomplete="email" required></label></p>
            <p><label><?php esc_html_e('Message', 'lead-intake'); ?><br>
                <textarea name="<?php echo $name('note'); ?>" rows="6"
                    maxlength="<?php echo self::MAX_NOTE; ?>"><?php echo esc_textarea($value('note')); ?></textarea></label></p>
            <p><button><?php esc_html_e('Send', 'lead-intake'); ?></button></p>
        </form>
        <?php
        // Without line breaks, which WordPress would turn into paragraphs.
        return preg_replace('/>\s+</', '><', (string) ob_get_clean());
    }
}
