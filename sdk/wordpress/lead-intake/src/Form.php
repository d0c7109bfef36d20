<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

defined('ABSPATH') || exit;

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

    /** @var array{name: string, email: string, note: string} what the visitor entered, when it was not accepted */
    private static array $entered = ['name' => '', 'email' => '', 'note' => ''];
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
        $posted = array_filter((array) wp_unslash($_POST[self::FIELD]), is_string(...));
        self::$entered = array_intersect_key($posted, self::$entered) + self::$entered;
        ['name' => $name, 'email' => $email, 'note' => $note] = self::$entered;
        $capture = new LeadCapture(trim($name), Contact::email(trim($email)), note: $note);
        self::$fault = self::faultOf($capture);
        if (self::$fault !== '') {
            status_header(422);
            return;
        }
        try {
            Delivery::store($capture);
        } catch (\Exception $error) {
            // The message contains none of the visitor's data.
            error_log("Lead Intake: a lead could not be stored: {$error->getMessage()}");
            self::$fault = __('That could not be stored. Please send it again later.', 'lead-intake');
            status_header(500);
            return;
        }
        wp_safe_redirect(add_query_arg(self::SENT, '1'), 303);
        exit;
    }

    /** What the service would refuse is said before anybody is thanked. */
    private static function faultOf(LeadCapture $capture): string
    {
        return match (array_key_first($capture->faults())) {
            null => '',
            'displayName' => __('Please enter your name, of up to 160 characters.', 'lead-intake'),
            'contact.value' => __('Please enter your e-mail address.', 'lead-intake'),
            default => __('Please write a message of up to 2,000 characters.', 'lead-intake'),
        };
    }

    /**
     * Posts to the address of the page, whatever page that is. The e-mail's field is no `type="email"`, for which browsers refuse
     * `jörg@müller.de`.
     */
    private static function html(): string
    {
        if (isset($_GET[self::SENT])) {
            return '<p role="status">' . esc_html__('Thank you. We will be in touch.', 'lead-intake') . '</p>';
        }
        $name = static fn (string $field): string => esc_attr(self::FIELD . "[$field]");
        ob_start();
        ?>
        <form class="lead-intake" method="post">
            <?php if (self::$fault !== '') : ?>
                <p role="alert"><?php echo esc_html(self::$fault); ?></p>
            <?php endif; ?>
            <p><label><?php esc_html_e('Name', 'lead-intake'); ?><br>
                <input name="<?php echo $name('name'); ?>" value="<?php echo self::entered('name'); ?>"
                    maxlength="160" autocomplete="name" required></label></p>
            <p><label><?php esc_html_e('E-mail', 'lead-intake'); ?><br>
                <input name="<?php echo $name('email'); ?>" value="<?php echo self::entered('email'); ?>" inputmode="email"
                    maxlength="254" autocomplete="email" required></label></p>
            <p><label><?php esc_html_e('Message', 'lead-intake'); ?><br>
                <textarea name="<?php echo $name('note'); ?>" rows="6"
                    maxlength="2000"><?php echo self::entered('note'); ?></textarea></label></p>
            <p><button><?php esc_html_e('Send', 'lead-intake'); ?></button></p>
        </form>
        <?php
        // Without line breaks, which WordPress would turn into paragraphs.
        return preg_replace('/>\s+</', '><', (string) ob_get_clean());
    }

    /** Returns HTML with numbers for characters: themes apply shortcodes, and put in other quotation marks, in the whole page. */
    private static function entered(string $field): string
    {
        return preg_replace_callback('/[!-~]/', static fn (array $found): string => '&#' . ord($found[0]) . ';', self::$entered[$field]);
    }
}
