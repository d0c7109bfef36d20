<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/** Says whether address, key, scopes and clock are right, before the first lead and without writing one. */
final class Connection
{
    /** @return array{bool, string} whether leads can be sent, and a sentence about it */
    public static function check(): array
    {
        $report = Settings::check();
        $found = array_column($report->findings, 'sentence', 'code');
        $wrong = array_values(array_filter($report->findings, static fn ($finding): bool => $finding->verdict === 'wrong'));
        $clock = $found['clock_ahead'] ?? $found['clock_behind'] ?? '';
        return match (true) {
            isset($found['key_refused'])
                => [false, __('The address is right, but the key is not: it was mistyped, replaced or revoked, or has expired.', 'lead-intake')],
            isset($found['create_missing'])
                => [false, __('Address and key are right, but the key may not create leads: it needs the scope leads.create.', 'lead-intake')],
            !$report->canCreate
                /* translators: %s: the reason, in English */
                => [false, sprintf(__('No lead can be sent: %s', 'lead-intake'), ($wrong[0] ?? $report->findings[0])->sentence)],
            $clock !== ''
                /* translators: %s: a sentence about the clock, in English */
                => [false, sprintf(__('Address and key are right, but the clock of this website is not: %s', 'lead-intake'), $clock)],
            Delivery::fault() !== null => [false, Delivery::fault()],
            $report->canRead => [true, __('Address, key, scopes and clock are right.', 'lead-intake')],
            default => [true, __('Address, key and clock are right; the key may create leads, and not read them.', 'lead-intake')],
        };
    }
}
