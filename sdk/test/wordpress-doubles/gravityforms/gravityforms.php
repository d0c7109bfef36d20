<?php

/**
 * Plugin Name: A double of Gravity Forms
 * Description: Has the hook gform_after_submission, entries and GFAPI, as its public documentation describes them.
 */

final class GFAPI
{
    public static function get_forms(): array
    {
        return array_map(fn (array $form) => ['fields' => array_map(fn ($field) => (object) $field, $form['fields'])] + $form, get_option('gravity_double', []));
    }

    public static function get_form(int $id): array|false
    {
        return array_column(self::get_forms(), null, 'id')[$id] ?? false;
    }
}

add_action('template_redirect', function (): void {
    if (isset($_POST['gform_submit'])) {
        $entry = ['id' => '1', 'form_id' => $_POST['gform_submit'], 'ip' => '127.0.0.1', 'status' => $_POST['status'] ?? 'active'];
        foreach (wp_unslash($_POST) as $name => $value) {
            if (str_starts_with($name, 'input_')) {
                $entry[str_replace('_', '.', substr($name, 6))] = $value;
            }
        }
        do_action('gform_after_submission', $entry, GFAPI::get_form((int) $_POST['gform_submit']));
        exit('Thank you for your message.');
    }
});
