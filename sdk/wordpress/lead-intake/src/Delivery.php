<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\LeadCapture;
use LeadIntake\Outbox\Outbox;

/** Stores leads and schedules WP-Cron to send them. */
final class Delivery
{
    private const EACH_MINUTE = 'lead_intake_deliver';
    private const SOON = 'lead_intake_deliver_soon';
    /** The option with the failure of the last pass: the process of WP-Cron may lack an extension that the pages have. */
    public const FAILURE = 'lead_intake_failure';

    public static function register(): void
    {
        add_filter('cron_schedules', static function (array $schedules): array {
            $schedules['lead_intake_minute'] = ['interval' => MINUTE_IN_SECONDS, 'display' => __('Each minute', 'lead-intake')];
            return $schedules;
        });
        // A backup or another plugin may lose the schedule. Checking it is cheap: each page loads this option anyway.
        add_action('init', self::schedule(...));
        add_action(self::EACH_MINUTE, self::deliver(...));
        add_action(self::SOON, self::deliver(...));
        // For other sources of leads: plugins for forms, shops, bookings.
        add_action('lead_intake_capture', self::store(...));
    }

    public static function unschedule(): void
    {
        array_map(wp_clear_scheduled_hook(...), [self::EACH_MINUTE, self::SOON, Troubles::DAILY]);
    }

    /**
     * Stores a lead to be sent soon. Stores the same lead once within an hour: on cached pages, many visitors would share a key in the page.
     * The salt prevents others from guessing the data from the key.
     *
     * @param LeadCapture|array<string, mixed> $capture an array uses the field names of the API
     *
     * @throws \InvalidArgumentException when it cannot be stored
     * @throws \RuntimeException when the database fails
     */
    public static function store(#[\SensitiveParameter] LeadCapture|array $capture): void
    {
        Outboxes::own()->add($capture, Outbox::keyFor(wp_salt(), $capture));
        self::deliverSoon();
    }

    /** Makes the next run of WP-Cron send the due leads, instead of the next minute's. */
    public static function deliverSoon(): void
    {
        wp_schedule_single_event(time(), self::SOON);
    }

    public static function schedule(): void
    {
        foreach ([self::EACH_MINUTE => 'lead_intake_minute', Troubles::DAILY => 'daily'] as $hook => $recurrence) {
            if (!wp_next_scheduled($hook)) {
                wp_schedule_event(time() + wp_get_schedules()[$recurrence]['interval'], $recurrence, $hook);
            }
        }
    }

    /** Returns why no lead is sent at all; null if leads are. For example, the system may not run WP-Cron although the website relies on it. */
    public static function fault(): ?string
    {
        $since = (int) wp_next_scheduled(self::EACH_MINUTE);
        // Without DISABLE_WP_CRON, visitors trigger WP-Cron, which is late after a night without any.
        $patience = defined('DISABLE_WP_CRON') && DISABLE_WP_CRON ? 10 * MINUTE_IN_SECONDS : DAY_IN_SECONDS;
        if ($since > 0 && time() - $since > $patience) {
            /* translators: %s: date and time */
            return sprintf(__('No lead is sent: WP-Cron has not run since %s.', 'lead-intake'), wp_date('Y-m-d H:i', $since));
        }
        $failure = (string) get_option(self::FAILURE);
        /* translators: %s: what is wrong, in English */
        return $failure === '' ? null : sprintf(__('WP-Cron could not send leads: %s', 'lead-intake'), $failure);
    }

    private static function deliver(): void
    {
        try {
            Outboxes::own()->deliver(Settings::client());
            delete_option(self::FAILURE);
        } catch (\Exception $error) {
            // The leads wait, and Troubles says why. If this threw, WordPress would run no other job of this minute.
            update_option(self::FAILURE, $error->getMessage(), false);
        }
    }
}
