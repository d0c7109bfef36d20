<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

use LeadIntake\LeadIntakeClient;

/** The URL to which leads are sent, and the key. The key never appears in a page. */
final class Settings
{
    public const OPTION = 'lead_intake_settings';

    /** Short, because the outbox retries. */
    private const DEADLINE_SECONDS = 10.0;

    public static function url(): string
    {
        return self::stored()['url'] ?? '';
    }

    public static function hasKey(): bool
    {
        return self::key() !== '';
    }

    /** Whether wp-config.php defines the key; then the form does not ask for it, and a key in the database is ignored. */
    public static function isKeyInConfig(): bool
    {
        return defined('LEAD_INTAKE_KEY');
    }

    /** @return ?LeadIntakeClient null while a setting is missing or wrong */
    public static function client(): ?LeadIntakeClient
    {
        try {
            return new LeadIntakeClient(self::url(), self::key(), deadlineSeconds: self::DEADLINE_SECONDS);
        } catch (\InvalidArgumentException) {
            return null;
        }
    }

    public static function setUp(): void
    {
        // Not autoloaded with every page.
        add_option(self::OPTION, [], '', false);
    }

    public static function forget(): void
    {
        delete_option(self::OPTION);
    }

    /**
     * Returns the settings to store from a submitted form. For an invalid field or an empty key, the stored value stays.
     *
     * @return array{url?: string, key?: string}
     */
    public static function checked(mixed $form): array
    {
        $settings = self::stored();
        $url = trim((string) ($form['url'] ?? ''));
        $key = trim((string) ($form['key'] ?? ''));
        // The key must not go over the network unencrypted.
        if (preg_match('~^https://[^\s/?#]+[^\s?#]*$|^http://(localhost|127\.0\.0\.1)(:\d+)?/?$~Di', $url)) {
            $settings['url'] = $url;
        } else {
            self::complain('url', __('The address must be like https://api.example.com.', 'lead-intake'));
        }
        if (preg_match('/^lik_[A-Za-z0-9_-]{48}$/D', $key)) {
            $settings['key'] = $key;
        } elseif ($key !== '') {
            self::complain('key', __('That is no key: one is lik_ and 48 characters.', 'lead-intake'));
        }
        return $settings;
    }

    private static function complain(string $field, string $message): void
    {
        add_settings_error(self::OPTION, "lead-intake-$field", $message);
    }

    private static function key(): string
    {
        return self::isKeyInConfig() ? (string) constant('LEAD_INTAKE_KEY') : (self::stored()['key'] ?? '');
    }

    /** @return array{url?: string, key?: string} */
    private static function stored(): array
    {
        $stored = get_option(self::OPTION);
        return is_array($stored) ? $stored : [];
    }
}
