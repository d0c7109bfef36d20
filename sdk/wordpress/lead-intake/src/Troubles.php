<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

defined('ABSPATH') || exit;

/** Says that leads are not delivered, as long as that is so: on all pages for administrators, and once a day by mail. */
final class Troubles
{
    public const DAILY = 'lead_intake_report';

    public static function register(): void
    {
        add_action('admin_notices', self::show(...));
        add_action(self::DAILY, self::mail(...));
    }

    private static function show(): void
    {
        foreach (current_user_can('manage_options') ? self::now() : [] as $text) {
            printf(
                '<div class="notice notice-warning"><p>Lead Intake: %s <a href="%s">%s</a></p></div>',
                esc_html($text),
                esc_url(LeadsPage::url()),
                esc_html__('Leads', 'lead-intake'),
            );
        }
    }

    private static function mail(): void
    {
        $texts = self::now();
        if ($texts !== []) {
            $subject = wp_specialchars_decode(get_option('blogname'), ENT_QUOTES) . ': ' . __('leads', 'lead-intake');
            wp_mail(get_option('admin_email'), $subject, implode("\n", [...$texts, LeadsPage::url()]));
        }
    }

    /** @return list<string> nothing about visitors */
    private static function now(): array
    {
        $texts = [];
        try {
            $count = Outboxes::own()->needsAttention(1)->count;
            if ($count > 0) {
                /* translators: %d: number of leads */
                $text = _n('%d lead needs somebody to look at it.', '%d leads need somebody to look at them.', $count, 'lead-intake');
                $texts[] = sprintf($text, $count);
            }
        } catch (\Exception $error) {
            /* translators: %s: what is wrong, in English */
            $text = __('%s. Deactivate and activate the plugin to create a missing table.', 'lead-intake');
            $texts[] = sprintf($text, $error->getMessage());
        }
        try {
            Settings::client();
        } catch (\Exception $error) {
            /* translators: %s: what is missing or wrong, in English */
            $text = __('Leads are stored, but none is sent until this setting is corrected: %s.', 'lead-intake');
            $texts[] = sprintf($text, $error->getMessage());
        }
        return $texts;
    }
}
