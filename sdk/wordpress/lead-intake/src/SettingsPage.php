<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/** Settings › Lead Intake. WordPress checks the nonce and the permission to change options. */
final class SettingsPage
{
    private const PAGE = 'lead-intake-settings';
    private const TEST = 'lead_intake_test';

    public static function register(string $file): void
    {
        add_filter('plugin_action_links_' . plugin_basename($file), static fn (array $links): array => [
            sprintf('<a href="%s">%s</a>', esc_url(self::url()), esc_html__('Settings', 'lead-intake')),
            ...$links,
        ]);
        add_action('admin_init', static function (): void {
            register_setting(self::PAGE, Settings::OPTION, ['sanitize_callback' => Settings::checked(...)]);
        });
        // Leads that waited for the settings are sent at once.
        add_action('update_option_' . Settings::OPTION, static function (): void {
            delete_option(Delivery::FAILURE);
            Delivery::deliverSoon();
        });
        add_action('admin_menu', static function (): void {
            $title = __('Lead Intake', 'lead-intake');
            add_options_page($title, $title, Action::CAPABILITY, self::PAGE, self::show(...));
        });
        Action::on(self::TEST, static function (): string {
            [$isRight, $text] = Settings::check();
            return Action::said(self::url(), $text, $isRight);
        });
    }

    public static function url(): string
    {
        return admin_url('options-general.php?page=' . self::PAGE);
    }

    private static function show(): void
    {
        $option = esc_attr(Settings::OPTION);
        Action::openPage(__('Lead Intake', 'lead-intake'));
        ?>
            <form action="options.php" method="post">
                <?php settings_fields(self::PAGE); ?>
                <table class="form-table" role="presentation">
                    <tr>
                        <th scope="row"><label for="lead-intake-url"><?php esc_html_e('Address of the service', 'lead-intake'); ?></label></th>
                        <td><input id="lead-intake-url" class="regular-text" type="url" required name="<?php echo $option; ?>[url]"
                            value="<?php echo esc_attr(Settings::url()); ?>" placeholder="https://api.example.com"></td>
                    </tr>
                    <tr>
                        <th scope="row"><label for="lead-intake-key"><?php esc_html_e('API key', 'lead-intake'); ?></label></th>
                        <td><?php self::showKey($option); ?></td>
                    </tr>
                    <tr>
                        <th scope="row"><label for="lead-intake-proxy"><?php esc_html_e('Proxy', 'lead-intake'); ?></label></th>
                        <td><?php self::showProxy($option); ?></td>
                    </tr>
                </table>
                <?php submit_button(); ?>
            </form>
            <?php Action::open(self::TEST); ?>
                <button class="button"><?php esc_html_e('Test connection', 'lead-intake'); ?></button>
                <?php esc_html_e('It tests what is saved.', 'lead-intake'); ?>
            </form>
        </div>
        <?php
    }

    /** Shows the field of the key, which is write-only: it does not show a stored key, and keeps it when left empty. */
    private static function showKey(string $option): void
    {
        if (Settings::isKeyInConfig()) {
            // The element that the label names.
            echo '<output id="lead-intake-key">' . esc_html__('wp-config.php has it, as LEAD_INTAKE_KEY.', 'lead-intake') . '</output>';
            return;
        }
        $there = Settings::hasKey()
            ? __('A key is stored. Leave this empty to keep it.', 'lead-intake')
            : __('No key is stored. The better place for it is wp-config.php, as LEAD_INTAKE_KEY.', 'lead-intake');
        echo "<input id=\"lead-intake-key\" class=\"regular-text\" type=\"password\" autocomplete=\"off\" placeholder=\"lik_…\" value=\"\" name=\"{$option}[key]\">";
        echo '<p class="description">' . esc_html($there) . '</p>';
    }

    /** Shows the field of the proxy. Without visitors' own addresses, the plugin cannot distinguish bots from people. */
    private static function showProxy(string $option): void
    {
        $headers = ['' => __('none', 'lead-intake')] + array_combine(Settings::ADDRESS_HEADERS, Settings::ADDRESS_HEADERS);
        echo "<select id=\"lead-intake-proxy\" name=\"{$option}[proxy]\">";
        foreach ($headers as $header => $text) {
            Action::option($header, $text, Settings::addressHeader());
        }
        $text = Throttle::isBlind()
            ? __('Visitors\' addresses are unknown here, so submissions are not limited. If there is a proxy, choose its header.', 'lead-intake')
            : __('The header in which the proxy in front of this website has the address of a visitor. Choose none without a proxy.', 'lead-intake');
        echo '</select><p class="description">' . esc_html($text) . '</p>';
    }
}
