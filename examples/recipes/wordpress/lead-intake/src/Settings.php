<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

use LeadIntake\LeadIntakeClient;

/** Where leads are sent, and with which key. The key is never part of a page. */
final class Settings
{
    public const OPTION = 'lead_intake_settings';

    /** The outbox tries again: one attempt of a pass need not be long. */
    private const DEADLINE_SECONDS = 10.0;

    public static function url(): string
    {
        return self::stored()['url'] ?? '';
    }

    public static function hasKey(): bool
    {
        return self::key() !== '';
    }

    /** Whether wp-config.php has the key: then it is not asked for, and none of the database counts. */
    public static function isKeyInConfig(): bool
    {
        return defined('LEAD_INTAKE_KEY');
    }

    /** @return ?LeadIntakeClient null while something is missing */
    public static function client(): ?LeadIntakeClient
    {
        return self::url() === '' || !self::hasKey()
            ? null
            : new LeadIntakeClient(self::url(), self::key(), deadlineSeconds: self::DEADLINE_SECONDS);
    }

    public static function setUp(): void
    {
        // Nothing that each page would have to load.
        add_option(self::OPTION, [], '', false);
    }

    public static function forget(): void
    {
        delete_option(self::OPTION);
    }

    /**
     * What is to be stored of a form that was sent: a field that cannot be right, and a key that is left empty, stay as they were.
     *
     * @return array{url?: string, key?: string}
     */
    public static function checked(mixed $form): array
    {
        $settings = self::stored();
        $url = trim((string) ($form['url'] ?? ''));
        $key = trim((string) ($form['key'] ?? ''));
        // What opens the service must not go over the network in clear.
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
