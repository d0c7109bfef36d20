<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

use LeadIntake\LeadCapture;

/** Stores leads and schedules WP-Cron to send them. */
final class Delivery
{
    private const EACH_MINUTE = 'lead_intake_deliver';
    private const SOON = 'lead_intake_deliver_soon';

    public static function register(): void
    {
        add_filter('cron_schedules', static function (array $schedules): array {
            $schedules['lead_intake_minute'] = ['interval' => MINUTE_IN_SECONDS, 'display' => __('Each minute', 'lead-intake')];
            return $schedules;
        });
        add_action(self::EACH_MINUTE, self::deliver(...));
        add_action(self::SOON, self::deliver(...));
        // For other sources of leads: plugins for forms, shops, bookings.
        add_action('lead_intake_capture', self::store(...));
    }

    public static function activate(): void
    {
        Settings::setUp();
        Outboxes::own()->setUp();
        if (!wp_next_scheduled(self::EACH_MINUTE)) {
            wp_schedule_event(time(), 'lead_intake_minute', self::EACH_MINUTE);
        }
    }

    public static function deactivate(): void
    {
        wp_clear_scheduled_hook(self::EACH_MINUTE);
        wp_clear_scheduled_hook(self::SOON);
    }

    /**
     * Stores a lead to be sent soon. The same lead within an hour is stored once.
     *
     * @param LeadCapture|array<string, mixed> $capture an array uses the field names of the API
     *
     * @throws \InvalidArgumentException when it cannot be stored
     * @throws \RuntimeException when the database fails
     */
    public static function store(#[\SensitiveParameter] LeadCapture|array $capture): void
    {
        Outboxes::own()->add($capture, self::keyFor($capture));
        self::deliverSoon();
    }

    /** Schedules due leads for the next run of WP-Cron, instead of within a minute. */
    public static function deliverSoon(): void
    {
        wp_schedule_single_event(time(), self::SOON);
    }

    private static function deliver(): void
    {
        // While the plugin is not set up, leads wait; LeadsPage shows this.
        $client = Settings::client();
        if ($client !== null) {
            Outboxes::own()->deliver($client);
        }
    }

    /**
     * Derives the key from the data and the hour, so that submitting twice creates one lead. A key in the page would be shared by many
     * visitors where pages are cached. The salt prevents others from guessing the data from the key.
     *
     * @return string UUID (version 8)
     */
    private static function keyFor(#[\SensitiveParameter] LeadCapture|array $capture): string
    {
        $hour = intdiv(time(), HOUR_IN_SECONDS);
        $hash = hash_hmac('sha256', $hour . wp_json_encode($capture), wp_salt());
        return sprintf(
            '%s-%s-8%s-a%s-%s',
            substr($hash, 0, 8),
            substr($hash, 8, 4),
            substr($hash, 12, 3),
            substr($hash, 15, 3),
            substr($hash, 18, 12),
        );
    }
}
