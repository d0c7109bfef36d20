<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/** Tools › Export and Erase Personal Data: finds a person's data on this website by the email address. Sent leads belong to the CRM. */
final class Privacy
{
    private const NAME = 'lead-intake';

    public static function register(): void
    {
        $title = __('Lead Intake', 'lead-intake');
        $exporter = [self::NAME => ['exporter_friendly_name' => $title, 'callback' => self::export(...)]];
        add_filter('wp_privacy_personal_data_exporters', static fn (array $all): array => $all + $exporter);
        $eraser = [self::NAME => ['eraser_friendly_name' => $title, 'callback' => self::erase(...)]];
        add_filter('wp_privacy_personal_data_erasers', static fn (array $all): array => $all + $eraser);
    }

    /** @return array{data: list<array<string, mixed>>, done: bool} */
    private static function export(string $email): array
    {
        $data = [];
        $add = static function (string $id, array $texts) use (&$data): void {
            $item = array_map(static fn (int|string $name, string $value): array => compact('name', 'value'), array_keys($texts), $texts);
            $data[] = ['group_id' => self::NAME, 'group_label' => __('Leads', 'lead-intake'), 'item_id' => self::NAME . "-$id", 'data' => $item];
        };
        self::find($email, $add, $add);
        return ['data' => $data, 'done' => true];
    }

    /** @return array{items_removed: int, items_retained: bool, messages: list<string>, done: bool} */
    private static function erase(string $email): array
    {
        $count = 0;
        self::find($email, static function (string $key) use (&$count): void {
            Outboxes::own()->discard($key);
            $count += 1;
        }, static function (string $id) use (&$count): void {
            Submissions::erase((int) $id);
            $count += 1;
        });
        $messages = [__('Leads that were sent are in the CRM: have them erased there, too.', 'lead-intake')];
        return ['items_removed' => $count, 'items_retained' => false, 'messages' => $messages, 'done' => true];
    }

    /**
     * @param \Closure(string, array<string, string>): void $withLead gets the key and the texts of a lead in the outbox
     * @param \Closure(string, array<string, string>): void $withSubmission gets the id and the fields of a submission
     */
    private static function find(string $email, \Closure $withLead, \Closure $withSubmission): void
    {
        $isOf = static fn (array $texts): bool => in_array(strtolower(trim($email)), array_map(strtolower(...), array_map(trim(...), $texts)), true);
        foreach (Outboxes::stored(Outboxes::table(), 'idempotency_key', 'capture') as $key => $capture) {
            $texts = Outboxes::texts($capture);
            $isOf($texts) && $withLead($key, $texts);
        }
        foreach (Outboxes::stored(Submissions::table(), 'id', 'fields') as $id => $fields) {
            $fields = array_filter($fields, is_string(...));
            $isOf($fields) && $withSubmission($id, $fields);
        }
    }
}
