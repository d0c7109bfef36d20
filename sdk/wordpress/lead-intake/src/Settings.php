<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\LeadIntakeClient;

/** The URL to which leads are sent, and the key. The key never appears in a page. */
final class Settings
{
    public const OPTION = 'lead_intake_settings';

    public const ADDRESS_HEADERS = ['HTTP_X_FORWARDED_FOR', 'HTTP_X_REAL_IP', 'HTTP_CF_CONNECTING_IP'];

    /** Short, because the outbox retries. */
    private const DEADLINE_SECONDS = 10.0;
    /** Shorter, because a person waits. */
    private const TEST_DEADLINE_SECONDS = 5.0;

    public static function url(): string
    {
        return self::stored()['url'] ?? '';
    }

    /** Returns the name in $_SERVER of the header in which the website's proxy sends the visitor's address; empty: there is no proxy. */
    public static function addressHeader(): string
    {
        $header = self::stored()['proxy'] ?? '';
        return in_array($header, self::ADDRESS_HEADERS, true) ? $header : '';
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

    /** @throws \LogicException when a setting is missing or wrong; its message omits the key */
    public static function client(): LeadIntakeClient
    {
        return new LeadIntakeClient(self::url(), self::key(), deadlineSeconds: self::DEADLINE_SECONDS);
    }

    /** Checks the settings, and writes no lead. @return array{bool, string} whether all is right, and a sentence on the settings and the clock */
    public static function check(): array
    {
        /* translators: %s: the reason, in English */
        $none = __('No lead can be sent: %s', 'lead-intake');
        try {
            $report = LeadIntakeClient::check(self::url(), self::key(), attemptTimeoutSeconds: self::TEST_DEADLINE_SECONDS);
        } catch (\LogicException $error) {
            return [false, sprintf($none, $error->getMessage())];
        }
        $found = array_column($report->findings, 'sentence', 'code');
        $faults = array_filter($report->findings, static fn ($each): bool => $each->verdict !== 'right' && $each->code !== 'not_checked');
        $clock = $found['clock_ahead'] ?? $found['clock_behind'] ?? '';
        return match (true) {
            isset($found['key_refused'])
                => [false, __('The address is right, but the key is not: it was mistyped, replaced or revoked, or has expired.', 'lead-intake')],
            isset($found['create_missing'])
                => [false, __('Address and key are right, but the key may not create leads: it needs the scope leads.create.', 'lead-intake')],
            !$report->canCreate => [false, sprintf($none, reset($faults)->sentence)],
            $clock !== ''
                /* translators: %s: a sentence about the clock, in English */
                => [false, sprintf(__('Address and key are right, but the clock of this website is not: %s', 'lead-intake'), $clock)],
            Delivery::fault() !== null => [false, Delivery::fault()],
            $report->canRead => [true, __('Address, key, scopes and clock are right.', 'lead-intake')],
            default => [true, __('Address, key and clock are right; the key may create leads, and not read them.', 'lead-intake')],
        };
    }

    /** @return array{url?: string, key?: string, proxy?: string} the settings to store; an invalid field or an empty key changes nothing */
    public static function checked(mixed $form): array
    {
        $settings = self::stored();
        ['url' => $url, 'key' => $key, 'proxy' => $proxy] = self::texts($form) + ['url' => '', 'key' => '', 'proxy' => ''];
        $settings['proxy'] = in_array($proxy, self::ADDRESS_HEADERS, true) ? $proxy : '';
        if (self::isSafe($url)) {
            $settings['url'] = $url;
        } else {
            self::complain('url', __('The address must be like https://api.example.com.', 'lead-intake'));
        }
        if (self::isKey($key)) {
            $settings['key'] = $key;
        } elseif ($key !== '') {
            self::complain('key', __('That is not a key. A key is lik_ and 48 characters, all of them typed correctly.', 'lead-intake'));
        }
        return $settings;
    }

    /** Whether the address is safe for the key and for updates: they may not cross the network unencrypted. */
    public static function isSafe(string $url): bool
    {
        return preg_match('~^https://[^\s/?#@]+[^\s?#]*$|^http://(localhost|127\.0\.0\.1)(:\d+)?/?$~Di', $url) === 1;
    }

    private static function isKey(#[\SensitiveParameter] string $key): bool
    {
        try {
            return (bool) new LeadIntakeClient('https://localhost', $key);
        } catch (\LogicException $error) {
            // A missing curl does not make the key wrong.
            return !$error instanceof \InvalidArgumentException;
        }
    }

    private static function complain(string $field, string $message): void
    {
        add_settings_error(self::OPTION, "lead-intake-$field", $message);
    }

    /** Returns the key without the white space around it, such as the line break at the end of a file. */
    private static function key(): string
    {
        $settings = self::isKeyInConfig() ? ['key' => constant('LEAD_INTAKE_KEY')] : self::stored();
        return self::texts($settings)['key'] ?? '';
    }

    /** @return array{url?: string, key?: string} */
    private static function stored(): array
    {
        return self::texts(get_option(self::OPTION));
    }

    /** @return array<string, string> only the texts, because another plugin, or a form that was tampered with, may have stored anything */
    private static function texts(mixed $settings): array
    {
        return array_map(trim(...), array_filter(is_array($settings) ? $settings : [], is_string(...)));
    }
}
