<?php

declare(strict_types=1);

namespace LeadIntakePlugin;
defined('ABSPATH') || exit;

/** The HTML of the shortcode's form. */
final class FormHtml
{
    /**
     * Returns a form that posts to the address of its page. The email field does not use `type="email"`, in which browsers refuse
     * `jörg@müller.de`.
     *
     * @param array{fields: list<string>, consent: string} $form
     * @param array<string, string> $entered by field
     * @param array<string, string> $faults by field; '': of the form
     */
    public static function of(array $form, string $sealed, #[\SensitiveParameter] array $entered, array $faults): string
    {
        if (apply_filters('lead_intake_has_style', true)) {
            // Enqueued here, so that only pages with a form load it. The build inserts the release.
            wp_enqueue_style('lead-intake-form', plugins_url('form.css', __DIR__), [], '0.0.0');
        }
        ['fields' => $fields, 'consent' => $consent] = $form;
        $isEither = array_diff(['email', 'phone'], $fields) === [];
        $required = $isEither ? '' : ' required';
        $rows = [
            'name' => [esc_html__('Name', 'lead-intake'), 'maxlength="160" autocomplete="name" required'],
            'email' => [$isEither ? esc_html__('Email (or phone)', 'lead-intake') : esc_html__('Email', 'lead-intake'), 'inputmode="email" maxlength="254" autocomplete="email"' . $required],
            'phone' => [$isEither ? esc_html__('Phone (or email)', 'lead-intake') : esc_html__('Phone', 'lead-intake'), 'inputmode="tel" maxlength="' . Form::MOST_OF_PHONE . '" autocomplete="tel"' . $required],
            'note' => [esc_html__('Message (optional)', 'lead-intake'), 'rows="6" maxlength="' . Form::mostOfNote($fields, $consent) . '"'],
            'consent' => [self::encoded($consent), 'required' . checked($entered['consent'] ?? '', '1', false)],
        ];
        $rows = array_intersect_key($rows, array_flip($consent === '' ? $fields : [...$fields, 'consent']));
        $first = array_key_first(array_intersect_key($rows, $faults));
        $id = wp_unique_id('lead-intake-');
        $html = '<form class="lead-intake" method="post">' . self::summary($faults, $first === null ? '' : "$id-$first");
        $html .= '<input type="hidden" name="lead_intake[form]" value="' . self::encoded($sealed) . '">';
        foreach ($rows as $field => [$title, $more]) {
            $more .= $field === $first ? ' autofocus' : '';
            $html .= self::row($field, "$id-$field", $title, $more, self::encoded($entered[$field] ?? ''), $faults[$field] ?? '');
        }
        // Bots fill in this field, too. People neither see nor reach it, with the stylesheet or without it.
        $html .= '<p style="position:absolute;inset-inline-start:-10000px" aria-hidden="true"><label>' . esc_html__('Leave this empty', 'lead-intake')
            . '<input name="lead_intake[website]" type="url" tabindex="-1" autocomplete="off"></label></p>';
        return "$html<p><button class=\"lead-intake__button wp-element-button\">" . esc_html__('Send', 'lead-intake') . '</button></p></form>';
    }

    /** Returns the fault of the form, or a link to the first faulty field. Browsers scroll to the element with the focus. */
    private static function summary(array $faults, string $first): string
    {
        /* translators: %d: number of fields */
        $text = _n('Nothing was sent yet: %d field needs a correction.', 'Nothing was sent yet: %d fields need a correction.', count($faults), 'lead-intake');
        $focus = $first === '' ? ' tabindex="-1" autofocus' : '';
        $html = isset($faults['']) ? esc_html($faults['']) : "<a href=\"#$first\">" . esc_html(sprintf($text, count($faults))) . '</a>';
        return $faults === [] ? '' : "<p class=\"lead-intake__summary\" role=\"alert\"$focus>$html</p>";
    }

    private static function row(string $field, string $id, string $title, string $more, #[\SensitiveParameter] string $entered, string $fault): string
    {
        $label = "<label class=\"lead-intake__label\" for=\"$id\">$title</label>";
        $more = "class=\"lead-intake__input\" id=\"$id\" name=\"lead_intake[$field]\" $more";
        $more .= $fault === '' ? '' : " aria-invalid=\"true\" aria-describedby=\"$id-fault\"";
        $html = match ($field) {
            'note' => "$label <textarea $more>$entered</textarea>",
            'consent' => "<input type=\"checkbox\" value=\"1\" $more> $label",
            default => "$label <input type=\"text\" value=\"$entered\" $more>",
        };
        $html .= $fault === '' ? '' : " <span class=\"lead-intake__fault\" id=\"$id-fault\">" . esc_html($fault) . '</span>';
        return "<p class=\"lead-intake__field lead-intake__field--$field\">$html</p>";
    }

    /** Returns HTML with characters as numbers, because themes apply shortcodes and replace quotation marks in the whole page. */
    private static function encoded(string $text): string
    {
        return preg_replace_callback('/[!-~]/', static fn (array $found): string => '&#' . ord($found[0]) . ';', $text);
    }
}
