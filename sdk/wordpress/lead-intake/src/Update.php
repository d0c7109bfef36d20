<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/**
 * Updates the plugin from the deployment to which leads are sent. The host of `Update URI`, a name that nobody can register, makes WordPress
 * ask this class instead of its own directory. A package must lie beside `<address>/docs/packages/wordpress.json`, which has its hash.
 */
final class Update
{
    private const HOST = 'lead-intake.invalid';
    private const MAX_JSON_BYTES = 16_384;
    private const MAX_PACKAGE_BYTES = 10 * 1024 * 1024;
    private const TIMEOUT_SECONDS = 15;

    private static string $plugin;

    public static function register(string $file): void
    {
        self::$plugin = plugin_basename($file);
        add_filter('update_plugins_' . self::HOST, self::offered(...), 10, 3);
        add_filter('upgrader_pre_download', self::download(...), 10, 4);
    }

    /** @return array<string, string>|false the newest release that the deployment has; false: unknown */
    private static function offered(mixed $update, array $data, string $plugin): mixed
    {
        if ($plugin !== self::$plugin) {
            return $update;
        }
        $answer = self::get('wordpress.json', ['limit_response_size' => self::MAX_JSON_BYTES]);
        $offer = is_wp_error($answer) ? null : json_decode(wp_remote_retrieve_body($answer), true);
        $offer = array_filter(is_array($offer) ? $offer : [], is_string(...)) + array_fill_keys(['version', 'package', 'sha256'], '');
        $isOffer = preg_match('/^\d+\.\d+\.\d+$/D', $offer['version']) && preg_match('/^[0-9a-f]{64}$/D', $offer['sha256'])
            // Only a file name is accepted, so that nothing in the file can lead elsewhere.
            && preg_match('/^[A-Za-z0-9][A-Za-z0-9._-]*\.zip$/D', $offer['package']);
        return $isOffer
            ? ['package' => self::folder() . $offer['package'], 'slug' => 'lead-intake', 'url' => rtrim(Settings::url(), '/') . '/docs'] + $offer
            : false;
    }

    /** Downloads the package of an update, and returns the file if it has the hash that was offered with it. */
    private static function download(mixed $reply, mixed $package, mixed $upgrader, mixed $extra = []): mixed
    {
        if ($reply !== false || !is_string($package) || !is_array($extra) || ($extra['plugin'] ?? null) !== self::$plugin) {
            return $reply;
        }
        $offer = get_site_transient('update_plugins')->response[self::$plugin] ?? null;
        $folder = self::folder();
        // The address may have changed since the offer.
        if ($folder === null || $package !== $folder . basename($package) || $package !== ($offer->package ?? null)) {
            return new \WP_Error('lead_intake_update', __('The update is not from the deployment to which leads are sent.', 'lead-intake'));
        }
        $file = wp_tempnam($package);
        $stream = ['stream' => true, 'filename' => $file, 'limit_response_size' => self::MAX_PACKAGE_BYTES];
        $answer = self::get(basename($package), $stream);
        if (!is_wp_error($answer) && hash_equals((string) ($offer->sha256 ?? ''), (string) hash_file('sha256', $file))) {
            return $file;
        }
        wp_delete_file($file);
        $text = __('The update could not be downloaded, or is not the one that was offered.', 'lead-intake');
        return is_wp_error($answer) ? $answer : new \WP_Error('lead_intake_update', $text);
    }

    private static function get(string $name, array $options): array|\WP_Error
    {
        // wp_safe_remote_get() would refuse deployments within a private network. No redirect is followed.
        $answer = wp_remote_get(self::folder() . $name, ['redirection' => 0, 'timeout' => self::TIMEOUT_SECONDS] + $options);
        $status = wp_remote_retrieve_response_code($answer);
        return is_wp_error($answer) || $status === 200 ? $answer : new \WP_Error('lead_intake_update', "the answer was $status");
    }

    /** @return ?string the address of the deployment's packages; null unless it is reached by https or on this machine */
    private static function folder(): ?string
    {
        return Settings::isSafe(Settings::url()) ? rtrim(Settings::url(), '/') . '/docs/packages/' : null;
    }
}
