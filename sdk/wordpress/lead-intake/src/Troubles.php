<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/** Reports that leads are not delivered, until they are: on all pages for administrators, and once a day by mail. */
final class Troubles
{
    public const DAILY = 'lead_intake_report';

    public static function register(): void
    {
        add_action('admin_notices', self::show(...));
        add_action(self::DAILY, static function (): void {
            self::mail();
            try {
                Submissions::tidy();
            } catch (\Exception) {
                // Tried again tomorrow. If this threw, WordPress would run no other job of this minute.
            }
        });
    }

    private static function show(): void
    {
        foreach (current_user_can(Action::CAPABILITY) ? self::now() : [] as $text => $url) {
            $link = sprintf('<a href="%s">%s</a>', esc_url($url), esc_html__('Look at it', 'lead-intake'));
            echo '<div class="notice notice-warning"><p>Lead Intake: ' . esc_html($text) . " $link</p></div>";
        }
    }

    private static function mail(): void
    {
        $texts = self::now();
        if ($texts !== []) {
            [$isRight, $reason] = Settings::check();
            $texts += $isRight ? [] : [$reason => SettingsPage::url()];
            $subject = wp_specialchars_decode(get_option('blogname'), ENT_QUOTES) . ': ' . __('leads', 'lead-intake');
            $lines = array_map(static fn (string $text, string $url): string => "$text $url", array_keys($texts), $texts);
            wp_mail(get_option('admin_email'), $subject, implode("\n", $lines));
        }
    }

    /** @return array<string, string> the faults, without data of visitors, each with the address of the page about it */
    private static function now(): array
    {
        $texts = [];
        try {
            $count = Outboxes::own()->needsAttention(1)->count;
            if ($count > 0) {
                /* translators: %d: number of leads */
                $text = _n('%d lead needs somebody to look at it.', '%d leads need somebody to look at them.', $count, 'lead-intake');
                $texts[sprintf($text, $count)] = LeadsPage::url();
            }
            ['count' => $count, 'forms' => $forms] = Submissions::needingSomebody();
            if ($count > 0) {
                /* translators: %d: number of submissions */
                $text = _n('%d submission of a form needs somebody to look at it.', '%d submissions of forms need somebody to look at them.', $count, 'lead-intake');
                $texts[sprintf($text, $count)] = FormsPage::url($forms[0]);
            }
        } catch (\Exception $error) {
            /* translators: %s: what is wrong, in English */
            $text = __('%s. Deactivate and activate the plugin to create a missing table.', 'lead-intake');
            $texts[sprintf($text, $error->getMessage())] = LeadsPage::url();
        }
        try {
            Settings::client();
            $fault = Delivery::fault();
        } catch (\Exception $error) {
            /* translators: %s: what is missing or wrong, in English */
            $text = __('Leads are stored, but none is sent until this setting is corrected: %s.', 'lead-intake');
            $isSet = Settings::url() !== '' && Settings::hasKey();
            $fault = $isSet ? sprintf($text, $error->getMessage()) : __('Leads are stored, but none is sent until address and key are set.', 'lead-intake');
        }
        return $fault === null ? $texts : $texts + [$fault => SettingsPage::url()];
    }
}
