<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/** Creates and removes the plugin's options and tables, in a network for each of its websites. */
final class Setup
{
    /** The version of a website's tables. A higher one in an update sets the tables up, because updates call no activation hook. */
    private const OPTION = 'lead_intake_schema';
    private const SCHEMA = 1;

    public static function register(string $file): void
    {
        register_activation_hook($file, self::setUp(...));
        register_deactivation_hook($file, static fn (mixed $networkWide) => self::forSites((bool) $networkWide, static function (): void {
            Delivery::unschedule();
            // The next activation creates missing tables.
            delete_option(self::OPTION);
        }));
        // Each website of a network, even one added later, is set up by its first request: a network may have thousands.
        add_action('init', static function (): void {
            load_plugin_textdomain('lead-intake', false, 'lead-intake/languages');
            try {
                (int) get_option(self::OPTION) === self::SCHEMA || self::setUp();
            } catch (\Exception) {
                // Troubles says that the table is missing.
            }
        }, 1);
        add_filter('wpmu_drop_tables', static fn (array $tables): array => [...$tables, ...Outboxes::tables()]);
    }

    /** @throws \Exception when the database fails */
    private static function setUp(): void
    {
        // Not autoloaded with every page.
        add_option(Settings::OPTION, [], '', false);
        Outboxes::setUp();
        Delivery::schedule();
        update_option(self::OPTION, self::SCHEMA);
    }

    public static function uninstall(): void
    {
        self::forSites(is_multisite(), static function (): void {
            array_map(delete_option(...), [Settings::OPTION, Mapping::OPTION, Delivery::FAILURE, self::OPTION]);
            // An undelivered lead is a person's enquiry: the tables stay until they contain none.
            Outboxes::dropIfDelivered();
        });
    }

    /** Calls a function for each website, even after one has failed. @throws \Throwable the first failure, after the last website */
    private static function forSites(bool $all, \Closure $do): void
    {
        $first = null;
        foreach ($all ? get_sites(['fields' => 'ids', 'number' => 0]) : [0] as $id) {
            $all && switch_to_blog($id);
            try {
                $do();
            } catch (\Throwable $error) {
                $first ??= $error;
            }
            $all && restore_current_blog();
        }
        $first === null || throw $first;
    }
}
