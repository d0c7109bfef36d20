<?php

declare(strict_types=1);

namespace LeadIntakePlugin;

use LeadIntake\Outbox\Entry;
use LeadIntake\Outbox\OutboxException;
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
        add_action('admin_notices', self::tellWhoCanHelp(...));
    }

    /** Retries or discards an entry. */
    private static function act(): void
    {
        $key = (string) wp_unslash($_POST['key'] ?? '');
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
        } catch (OutboxException) {
            // The entry was delivered meanwhile, as the list shows.
        }
        wp_safe_redirect(self::url());
        exit;
    }

    private static function tellWhoCanHelp(): void
    {
        if (!current_user_can('manage_options')) {
            return;
        }
        foreach (self::troubles() as $text) {
            printf(
                '<div class="notice notice-warning"><p>Lead Intake: %s <a href="%s">%s</a></p></div>',
                esc_html($text),
                esc_url(self::url()),
                esc_html__('Leads', 'lead-intake'),
            );
        }
    }

    /** @return list<string> */
    private static function troubles(): array
    {
        $texts = [];
        try {
            $count = Outboxes::own()->needsAttention(1)->count;
            if ($count > 0) {
                /* translators: %d: number of leads */
                $text = _n('%d lead needs somebody to look at it.', '%d leads need somebody to look at them.', $count, 'lead-intake');
                $texts[] = sprintf($text, $count);
            }
        } catch (\RuntimeException $error) {
            // A missing table must not break the pages that manage plugins.
            $texts[] = $error->getMessage();
        }
        if (Settings::client() === null) {
            $texts[] = __('Leads are stored, and not sent until address and key are set.', 'lead-intake');
        }
        return $texts;
    }

    private static function show(): void
    {
        $outbox = Outboxes::own();
        ?>
        <div class="wrap">
            <h1><?php esc_html_e('Leads', 'lead-intake'); ?></h1>
            <h2><?php esc_html_e('These need somebody', 'lead-intake'); ?></h2>
            <?php self::showTable($outbox->needsAttention()->entries); ?>
            <h2><?php esc_html_e('The newest', 'lead-intake'); ?></h2>
            <?php self::showTable($outbox->newest()); ?>
        </div>
        <?php
    }

    /** @param list<Entry> $entries */
    private static function showTable(array $entries): void
    {
        $headings = [
            __('Stored', 'lead-intake'),
            __('Lead', 'lead-intake'),
            __('State', 'lead-intake'),
            __('Attempts', 'lead-intake'),
            __('Why it is not delivered', 'lead-intake'),
            '',
        ];
        ?>
        <table class="widefat striped">
            <thead><tr><?php foreach ($headings as $heading) : ?><th><?php echo esc_html($heading); ?></th><?php endforeach; ?></tr></thead>
            <tbody>
            <?php foreach ($entries as $entry) : ?>
                <tr>
                    <td><?php echo esc_html(wp_date('Y-m-d H:i', $entry->createdAt->getTimestamp())); ?></td>
                    <td><?php echo esc_html(self::person($entry)); ?></td>
                    <td><?php echo esc_html(self::state($entry->state)); ?></td>
                    <td><?php echo esc_html((string) $entry->attempts); ?></td>
                    <td><?php echo esc_html((string) $entry->reason); ?></td>
                    <td><?php self::showButtons($entry); ?></td>
                </tr>
            <?php endforeach; ?>
            </tbody>
        </table>
        <?php
    }

    private static function showButtons(Entry $entry): void
    {
        if ($entry->state !== State::Waiting && $entry->state !== State::Refused) {
            return;
        }
        ?>
        <form method="post" action="<?php echo esc_url(admin_url('admin-post.php')); ?>">
            <input type="hidden" name="action" value="<?php echo esc_attr(self::ACTION); ?>">
            <input type="hidden" name="key" value="<?php echo esc_attr($entry->idempotencyKey); ?>">
            <?php wp_nonce_field(self::ACTION . $entry->idempotencyKey, '_wpnonce', true); ?>
            <button class="button" name="retry"><?php esc_html_e('Send again', 'lead-intake'); ?></button>
            <button class="button" name="discard"><?php esc_html_e('Discard', 'lead-intake'); ?></button>
        </form>
        <?php
    }

    /** Returns the name, contact and note of the lead, while its data are stored. */
    private static function person(Entry $entry): string
    {
        $text = static fn (mixed $value): string => is_scalar($value) ? (string) $value : '';
        $capture = $entry->capture ?? [];
        $contact = is_array($capture['contact'] ?? null) ? $capture['contact'] : [];
        return trim($text($capture['displayName'] ?? '') . ' ' . $text($contact['value'] ?? '') . ' ' . $text($capture['note'] ?? ''));
    }

    private static function state(State $state): string
    {
        return match ($state) {
            State::Waiting => __('waits', 'lead-intake'),
            State::Delivered => __('delivered', 'lead-intake'),
            State::AlreadyOpen => __('open already', 'lead-intake'),
            State::Refused => __('refused', 'lead-intake'),
            State::Discarded => __('discarded', 'lead-intake'),
        };
    }

    private static function url(): string
    {
        return admin_url('tools.php?page=' . self::PAGE);
    }
}
