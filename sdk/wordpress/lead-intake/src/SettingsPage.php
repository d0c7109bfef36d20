<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

defined('ABSPATH') || exit;

/** Settings › Lead Intake. WordPress checks the nonce and the permission to change options. */
final class SettingsPage
{
    private const PAGE = 'lead-intake-settings';

    public static function register(string $file): void
    {
        add_filter('plugin_action_links_' . plugin_basename($file), static fn (array $links): array => [
            sprintf('<a href="%s">%s</a>', esc_url(self::url()), esc_html__('Settings', 'lead-intake')),
            ...$links,
        ]);
        add_action('admin_init', static function (): void {
            register_setting(self::PAGE, Settings::OPTION, ['sanitize_callback' => Settings::checked(...)]);
        });
        // Leads that waited for the settings are sent without waiting for the next minute.
        add_action('update_option_' . Settings::OPTION, Delivery::deliverSoon(...), accepted_args: 0);
        add_action('admin_menu', static function (): void {
            $title = __('Lead Intake', 'lead-intake');
            add_options_page($title, $title, 'manage_options', self::PAGE, self::show(...));
        });
    }

    public static function url(): string
    {
        return admin_url('options-general.php?page=' . self::PAGE);
    }

    private static function show(): void
    {
        ?>
        <div class="wrap">
            <h1><?php esc_html_e('Lead Intake', 'lead-intake'); ?></h1>
            <form action="options.php" method="post">
                <?php settings_fields(self::PAGE); ?>
                <table class="form-table" role="presentation">
                    <tr>
                        <th scope="row"><label for="lead-intake-url"><?php esc_html_e('Address', 'lead-intake'); ?></label></th>
                        <td><input id="lead-intake-url" class="regular-text" type="url" required
                            name="<?php echo esc_attr(Settings::OPTION); ?>[url]"
                            value="<?php echo esc_attr(Settings::url()); ?>" placeholder="https://api.example.com"></td>
                    </tr>
                    <tr>
                        <th scope="row"><label for="lead-intake-key"><?php esc_html_e('Key', 'lead-intake'); ?></label></th>
                        <td><?php self::showKey(); ?></td>
                    </tr>
                </table>
                <?php submit_button(); ?>
            </form>
        </div>
        <?php
    }

    /** A write-only field: a stored key is not shown, and an empty field keeps it. */
    private static function showKey(): void
    {
        if (Settings::isKeyInConfig()) {
            esc_html_e('wp-config.php has it, as LEAD_INTAKE_KEY.', 'lead-intake');
            return;
        }
        $there = Settings::hasKey()
            ? __('A key is stored. Leave this empty to keep it.', 'lead-intake')
            : __('No key is stored. Better than here it stands in wp-config.php: see README.', 'lead-intake');
        ?>
        <input id="lead-intake-key" class="regular-text" type="password" autocomplete="off" value=""
            name="<?php echo esc_attr(Settings::OPTION); ?>[key]">
        <p class="description"><?php echo esc_html($there); ?></p>
        <?php
    }
}
