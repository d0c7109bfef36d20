<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

use LeadIntake\Outbox\Entry;
use LeadIntake\Outbox\OutboxException;
use LeadIntake\Outbox\State;

/** Tools › Leads: the leads, sent and unsent, and the actions of a person. */
final class LeadsPage
{
    private const PAGE = 'lead-intake-leads';
    private const ACTION = 'lead_intake_entry';
    private const COMPARE = 'lead_intake_compare';
    /** Shorter than the time limit of servers for a page; the next press of the button continues. */
    private const COMPARE_SECONDS = 20.0;

    public static function register(): void
    {
        add_action('admin_menu', static function (): void {
            $title = __('Leads', 'lead-intake');
            add_management_page($title, $title, Action::CAPABILITY, self::PAGE, self::show(...));
        });
        Action::on(self::ACTION, static function (string $key): string {
            if (isset($_POST['discard'])) {
                Outboxes::own()->discard($key);
            } else {
                Outboxes::own()->retry($key);
                Delivery::deliverSoon();
            }
            return self::url();
        });
        Action::on(self::COMPARE, static function (): string {
            try {
                $report = Outboxes::own()->reconcile(Settings::client(), maxSeconds: self::COMPARE_SECONDS);
            } catch (OutboxException | \LogicException $error) {
                return Action::said(self::url(), $error->getMessage(), false);
            }
            $more = $report->isComplete ? '' : ' ' . __('Not everything was compared yet: press the button again.', 'lead-intake');
            return Action::said(self::url(), $report->summary . $more, $report->isComplete && $report->differences === []);
        });
    }

    private static function show(): void
    {
        Action::openPage(__('Leads', 'lead-intake'));
        try {
            $none = __('Nothing. No lead needs attention.', 'lead-intake');
            self::showTable(__('Leads that need attention', 'lead-intake'), Outboxes::own()->needsAttention()->entries, $none);
            self::showTable(__('The newest leads', 'lead-intake'), Outboxes::own()->newest());
            self::showComparison();
        } catch (\Exception) {
            // The notice above says that the database has failed.
        }
        echo '</div>';
    }

    /** @param list<Entry> $entries @param string $none what is shown in place of an empty table */
    private static function showTable(string $title, array $entries, string $none = ''): void
    {
        echo '<h2>' . esc_html($title) . '</h2>';
        if ($entries === [] && $none !== '') {
            echo '<p>' . esc_html($none) . '</p>';
            return;
        }
        $outcome = [__('State', 'lead-intake'), __('Attempts', 'lead-intake'), __('Remarks', 'lead-intake')];
        self::openTable([__('Stored', 'lead-intake'), __('Lead', 'lead-intake'), ...$outcome, __('Actions', 'lead-intake')]);
        foreach ($entries as $entry) {
            echo '<tr><td>' . esc_html((string) wp_date('Y-m-d H:i', $entry->createdAt->getTimestamp())) . '</td>';
            echo '<td class="texts">' . esc_html(self::lead($entry)) . '</td>';
            echo '<td>' . esc_html(self::stateText($entry->state->value)) . '</td><td>' . esc_html((string) $entry->attempts) . '</td>';
            echo '<td class="texts">' . esc_html($entry->reason ?? ($entry->attempts === 0 ? (string) Delivery::fault() : '')) . '</td><td>';
            self::showButtons($entry);
            echo '</td></tr>';
        }
        echo '</tbody></table>';
    }

    /** Shows the findings of the latest comparison, and the button for another. */
    private static function showComparison(): void
    {
        echo '<h2>' . esc_html__('Has everything arrived?', 'lead-intake') . '</h2>';
        settings_errors('lead_intake');
        $report = Outboxes::own()->lastReconciliation();
        if ($report !== null) {
            echo '<p>' . esc_html(wp_date('Y-m-d H:i', $report->startedAt->getTimestamp()) . ': ' . $report->summary) . '</p>';
            foreach ($report->differences as $difference) {
                echo '<p class="texts">' . esc_html("$difference->reason: $difference->leadId") . '</p>';
            }
        }
        Action::open(self::COMPARE);
        echo '<button class="button">' . esc_html__('Compare with the service', 'lead-intake') . '</button></form>';
    }

    /** Prints the beginning of a table, which the caller ends. @param list<string> $headings */
    public static function openTable(array $headings): void
    {
        echo '<table class="widefat striped"><thead><tr>';
        foreach ($headings as $heading) {
            echo '<th scope="col">' . esc_html($heading) . '</th>';
        }
        echo '</tr></thead><tbody>';
    }

    public static function stateText(string $state): string
    {
        return match (State::from($state)) {
            State::Waiting => __('waiting', 'lead-intake'),
            State::Delivered => __('delivered', 'lead-intake'),
            State::AlreadyOpen => __('already open', 'lead-intake'),
            State::Refused => __('refused', 'lead-intake'),
            State::Discarded => __('discarded', 'lead-intake'),
        };
    }

    /** Shows the buttons of an entry. It can be discarded while its data is stored, even once it is delivered. */
    private static function showButtons(Entry $entry): void
    {
        $isOpen = in_array($entry->state, [State::Waiting, State::Refused], true);
        if (!$isOpen && $entry->capture === null) {
            return;
        }
        Action::open(self::ACTION, $entry->idempotencyKey);
        if ($isOpen) {
            echo '<button class="button" name="retry">' . esc_html__('Send again', 'lead-intake') . '</button> ';
        }
        $text = $isOpen ? __('Discard', 'lead-intake') : __('Seen', 'lead-intake');
        echo '<button class="button" name="discard">' . esc_html($text) . '</button></form>';
    }

    /** Returns the name, contact and note while the data is stored, and the id of the lead that the service has. */
    private static function lead(Entry $entry): string
    {
        $texts = $entry->capture === null ? [__('The data is erased here.', 'lead-intake')] : Outboxes::texts($entry->capture);
        return implode("\n", array_filter([...$texts, (string) $entry->leadId]));
    }

    public static function url(): string
    {
        return admin_url('tools.php?page=' . self::PAGE);
    }
}
