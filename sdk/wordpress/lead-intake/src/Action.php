<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/** The buttons of administrators: each sends a POST with a nonce for its subject, and works for administrators alone. */
final class Action
{
    public const CAPABILITY = 'manage_options';

    /** @param \Closure(string): string $do gets the subject of the button, and returns the address of the page to show next */
    public static function on(string $action, \Closure $do): void
    {
        add_action("admin_post_$action", static function () use ($action, $do): void {
            $subject = is_string($_POST['subject'] ?? null) ? wp_unslash($_POST['subject']) : '';
            check_admin_referer($action . $subject);
            if (!current_user_can(self::CAPABILITY)) {
                wp_die(esc_html__('You may not do that.', 'lead-intake'), '', ['response' => 403]);
            }
            try {
                $next = $do($subject);
            } catch (\Exception) {
                // The database has failed, or the lead was delivered in the meantime. The page shows which.
                $next = wp_get_referer() ?: admin_url();
            }
            wp_safe_redirect($next);
            exit;
        });
    }

    /** Prints the beginning of a page for administrators, which the caller ends. */
    public static function openPage(string $title): void
    {
        echo '<div class="wrap lead-intake"><h1>' . esc_html($title) . '</h1><style>.lead-intake :is(h2, .texts) { overflow-wrap: anywhere }'
            . ' .lead-intake :is(select, input) { max-width: 100% } .lead-intake .texts { white-space: pre-line }'
            . ' @media (max-width: 782px) { .lead-intake :is(.widefat, tbody, tr, td) { display: block; width: auto }'
            . ' .lead-intake thead { display: none } }</style>';
    }

    /** Makes WordPress show a text on the next page, and returns that page's address. */
    public static function said(string $url, string $text, bool $isRight): string
    {
        add_settings_error('lead_intake', 'lead_intake', $text, $isRight ? 'success' : 'error');
        // options.php does the same.
        set_transient('settings_errors', get_settings_errors(), MINUTE_IN_SECONDS);
        return add_query_arg('settings-updated', 'true', $url);
    }

    public static function option(string $value, string $text, string $chosen): void
    {
        printf('<option value="%s"%s>%s</option>', esc_attr($value), selected($value, $chosen, false), esc_html($text === '' ? $value : $text));
    }

    /** Prints the beginning of the form, which the caller ends. */
    public static function open(string $action, string $subject = ''): void
    {
        printf('<form method="post" action="%s">', esc_url(admin_url('admin-post.php')));
        printf('<input type="hidden" name="action" value="%s">', esc_attr($action));
        printf('<input type="hidden" name="subject" value="%s">', esc_attr($subject));
        // Has no id, because several forms of a page would share it.
        printf('<input type="hidden" name="_wpnonce" value="%s">', esc_attr(wp_create_nonce($action . $subject)));
        wp_referer_field();
    }
}
