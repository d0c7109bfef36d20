<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

defined('ABSPATH') || exit;

use LeadIntake\Outbox\Entry;
use LeadIntake\Outbox\State;

/** Tools › Leads: what was sent, what was not, and the actions of a person. */
final class LeadsPage
{
    private const PAGE = 'lead-intake-leads';
    private const ACTION = 'lead_intake_entry';

    public static function register(): void
    {
        add_action('admin_menu', static function (): void {
            $title = __('Leads', 'lead-intake');
            add_management_page($title, $title, 'manage_options', self::PAGE, self::show(...));
        });
        add_action('admin_post_' . self::ACTION, self::act(...));
    }

    /** Retries or discards an entry. */
    private static function act(): void
    {
        $key = is_string($_POST['key'] ?? null) ? $_POST['key'] : '';
        check_admin_referer(self::ACTION . $key);
        if (!current_user_can('manage_options')) {
            wp_die(esc_html__('You may not do that.', 'lead-intake'), '', ['response' => 403]);
        }
        try {
            if (isset($_POST['discard'])) {
                Outboxes::own()->discard($key);
            } else {
                Outboxes::own()->retry($key);
                Delivery::deliverSoon();
            }
        } catch (\Exception) {
            // The entry was delivered meanwhile or the database has failed, as the list shows.
        }
        wp_safe_redirect(self::url());
        exit;
    }

    private static function show(): void
    {
        echo '<div class="wrap"><h1>' . esc_html__('Leads', 'lead-intake') . '</h1>';
        try {
            self::showTable(__('These need somebody', 'lead-intake'), Outboxes::own()->needsAttention()->entries);
            self::showTable(__('The newest', 'lead-intake'), Outboxes::own()->newest());
        } catch (\Exception) {
            // The database has failed: the notice above says so.
        }
        echo '</div>';
    }

    /** @param list<Entry> $entries */
    private static function showTable(string $title, array $entries): void
    {
        $headings = [
            __('Stored', 'lead-intake'),
            __('Lead', 'lead-intake'),
            __('State', 'lead-intake'),
            __('Attempts', 'lead-intake'),
            __('Remarks', 'lead-intake'),
            '',
        ];
        ?>
        <h2><?php echo esc_html($title); ?></h2>
        <table class="widefat striped">
            <thead><tr><?php foreach ($headings as $heading) : ?><th><?php echo esc_html($heading); ?></th><?php endforeach; ?></tr></thead>
            <tbody>
            <?php foreach ($entries as $entry) : ?>
                <tr>
                    <td><?php echo esc_html(wp_date('Y-m-d H:i', $entry->createdAt->getTimestamp())); ?></td>
                    <td style="white-space: pre-line"><?php echo esc_html(self::lead($entry)); ?></td>
                    <td><?php echo esc_html($entry->state->value); ?></td>
                    <td><?php echo esc_html((string) $entry->attempts); ?></td>
                    <td><?php echo esc_html((string) $entry->reason); ?></td>
                    <td><?php self::showButtons($entry); ?></td>
                </tr>
            <?php endforeach; ?>
            </tbody>
        </table>
        <?php
    }

    /** An entry can be discarded while its data are stored: also a delivered one, of which somebody has to read the message first. */
    private static function showButtons(Entry $entry): void
    {
        $isOpen = in_array($entry->state, [State::Waiting, State::Refused], true);
        if (!$isOpen && $entry->capture === null) {
            return;
        }
        ?>
        <form method="post" action="<?php echo esc_url(admin_url('admin-post.php')); ?>">
            <input type="hidden" name="action" value="<?php echo esc_attr(self::ACTION); ?>">
            <input type="hidden" name="key" value="<?php echo esc_attr($entry->idempotencyKey); ?>">
            <?php wp_nonce_field(self::ACTION . $entry->idempotencyKey, '_wpnonce', true); ?>
            <?php if ($isOpen) : ?>
                <button class="button" name="retry"><?php esc_html_e('Send again', 'lead-intake'); ?></button>
            <?php endif; ?>
            <button class="button" name="discard"><?php
                echo esc_html($isOpen ? __('Discard', 'lead-intake') : __('Seen', 'lead-intake'));
            ?></button>
        </form>
        <?php
    }

    /** Returns the name, contact and note, while the data are stored, and the id of the lead that the service has. */
    private static function lead(Entry $entry): string
    {
        $capture = $entry->capture ?? [];
        $contact = is_array($capture['contact'] ?? null) ? $capture['contact'] : [];
        $texts = [$capture['displayName'] ?? '', $contact['value'] ?? '', $capture['note'] ?? '', $entry->leadId];
        return implode("\n", array_filter($texts, static fn (mixed $text): bool => is_string($text) && $text !== ''));
    }

    public static function url(): string
    {
        return admin_url('tools.php?page=' . self::PAGE);
    }
}
