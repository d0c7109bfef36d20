import { join } from 'node:path';
import { ROOT } from '../../../test/tools/processes.ts';
import { NO_UTF8 } from './forms.ts';

/** A form plugin that our plugin can be connected to. */
export interface FormPlugin {
  readonly title: string;
  /** Its name in our plugin. */
  readonly name: string;
  /** Its main file, relative to the folder of plugins. */
  readonly file: string;
  /** The folder of its test double. */
  readonly double: string;
  /** Statements that create a form with the fields of a `Submission`, titled `$title`, and print its id. */
  readonly creation: string;
  /** The same for the real plugin, if it needs other statements than its double. */
  readonly realCreation?: string;
  /** The names of its fields. */
  readonly fields: Readonly<Record<keyof Submission, string>>;
  /** Sends a form, as the plugin's script does, and returns what the visitor reads. */
  submit(
    site: (path: string) => string,
    id: string,
    values: Submission,
    headers: Readonly<Record<string, string>>,
  ): Promise<string>;
  /** Whether anybody can download it. */
  readonly isFree?: boolean;
}

/** A visitor's input. */
export interface Submission {
  readonly email: string;
  readonly name: string;
  readonly note: string;
  readonly animal: string;
  readonly consent: string;
}

const double = (folder: string) => join(ROOT, 'sdk/test/wordpress-doubles', folder);

/** Posts a form and returns the plugin's answer: normalized JSON, or the page. */
const readAnswer = async (
  address: string,
  body: URLSearchParams | FormData,
  headers: Readonly<Record<string, string>>,
): Promise<string> => {
  const request = new Request(address, { method: 'POST', headers, body });
  const bytes = Buffer.from(await request.arrayBuffer()).toString('latin1');
  const encoded = encodeURIComponent(NO_UTF8);
  const sent = bytes
    .replaceAll(Buffer.from(NO_UTF8).toString('latin1'), '\xff')
    .replaceAll(encoded, '%FF')
    .replaceAll(encodeURIComponent(encoded), encodeURIComponent('%FF'));
  const answer = await fetch(address, { method: 'POST', headers: request.headers, body: Buffer.from(sent, 'latin1') });
  const text = await answer.text();
  return text.startsWith('{') ? JSON.stringify(JSON.parse(text)) : text;
};

const CF7_FORM =
  '[email* your-email][text* your-name][textarea your-message][select animal "cat" "dog"][checkbox agree "yes"][submit "Send"]';

/** Returns the fields as Fluent Forms stores them. */
const fluentFields = (): string => {
  const field = (element: string, name: string, label: string, more: object = {}) => ({
    element,
    attributes: { name, type: 'text', value: '', class: '', placeholder: '' },
    settings: {
      label,
      admin_field_label: label,
      container_class: '',
      validation_rules: {},
      conditional_logics: [],
      ...more,
    },
    editor_options: { title: label },
  });
  const options = (...values: string[]) => ({
    advanced_options: values.map((value) => ({ label: value, value, calc_value: '' })),
  });
  const part = (name: string) => field('input_text', name, name, { visible: true });
  const fields = [
    field('input_email', 'email', 'E-mail address'),
    {
      ...field('input_name', 'names', 'Full name'),
      fields: { first_name: part('first_name'), last_name: part('last_name') },
    },
    field('textarea', 'message', 'Your message'),
    field('select', 'animal', 'Your animal', options('cat', 'dog')),
    field('input_checkbox', 'agree', 'Agreed', options('yes')),
  ];
  return JSON.stringify({ fields, submitButton: { ...field('button', 'submit', 'Send'), uniqElKey: 'el_1' } });
};

export const FORM_PLUGINS: readonly FormPlugin[] = [
  {
    title: 'Contact Form 7',
    name: 'cf7',
    file: 'contact-form-7/wp-contact-form-7.php',
    double: double('contact-form-7'),
    creation: `echo wpcf7_save_contact_form(['title' => $title, 'form' => '${CF7_FORM}', 'mail' => ['recipient' => 'a@example.org',
      'sender' => 'a@example.org', 'subject' => 'A form', 'body' => 'x', 'additional_headers' => '', 'attachments' => '']])->id();`,
    fields: { email: 'your-email', name: 'your-name', note: 'your-message', animal: 'animal', consent: 'agree' },
    submit: (site, id, values, headers) => {
      const body = new FormData();
      const own = {
        _wpcf7: id,
        _wpcf7_version: '5.7.7',
        _wpcf7_locale: 'en_US',
        _wpcf7_unit_tag: `wpcf7-f${id}-o1`,
        _wpcf7_container_post: '0',
      };
      const { consent, ...others } = values;
      const named = Object.entries(others).map(([part, value]) => [CF7_FIELDS[part as keyof typeof CF7_FIELDS], value]);
      for (const [name, value] of [...Object.entries(own), ...named]) body.set(name ?? '', value ?? '');
      if (consent !== '') body.set('agree[]', consent);
      return readAnswer(site(`?rest_route=/contact-form-7/v1/contact-forms/${id}/feedback`), body, headers);
    },
    isFree: true,
  },
  {
    title: 'Fluent Forms',
    name: 'fluent',
    file: 'fluentform/fluentform.php',
    double: double('fluentform'),
    creation: `update_option('fluentform_double', [7 => ['id' => 7, 'title' => $title, 'labels' => ['email' => 'E-mail address',
      'names' => 'Full name', 'message' => 'Your message', 'animal' => 'Your animal', 'agree' => 'Agreed']]]); echo 7;`,
    realCreation: `$id = wpFluent()->table('fluentform_forms')->insertGetId(['title' => $title, 'status' => 'published', 'type' => 'form',
      'form_fields' => base64_decode('${Buffer.from(fluentFields()).toString('base64')}'), 'created_by' => 1, 'created_at' => current_time('mysql'),
      'updated_at' => current_time('mysql')]);
      wpFluent()->table('fluentform_form_meta')->insert(['form_id' => $id, 'meta_key' => 'formSettings', 'value' => json_encode(
        ['confirmation' => ['redirectTo' => 'samePage', 'messageToShow' => 'Thank you for your message.', 'samePageFormBehavior' => 'hide_form'],
        'restrictions' => [], 'layout' => []])]);
      echo $id;`,
    fields: { email: 'email', name: 'names', note: 'message', animal: 'animal', consent: 'agree' },
    submit: (site, id, { email, name, note, animal, consent }, headers) => {
      const [first = '', ...rest] = name.split(' ');
      const data = new URLSearchParams({
        __fluent_form_embded_post_id: '1',
        email,
        'names[first_name]': first,
        'names[last_name]': rest.join(' '),
        message: note,
        animal,
      });
      if (consent !== '') data.set('agree[]', consent);
      const body = new URLSearchParams({ action: 'fluentform_submit', form_id: id, data: data.toString() });
      return readAnswer(site('wp-admin/admin-ajax.php'), body, headers);
    },
    isFree: true,
  },
  {
    title: 'WPForms',
    name: 'wpforms',
    file: 'wpforms/wpforms.php',
    double: double('wpforms'),
    creation: `$fields = array_map(fn ($id, $label, $type) => compact('id', 'label', 'type'), ['1', '2', '3', '4', '5'],
        ['Your e-mail', 'Your name', 'Your message', 'Your animal', 'I agree'], ['email', 'name', 'textarea', 'select', 'checkbox']);
      echo wp_insert_post(['post_type' => 'wpforms', 'post_status' => 'publish', 'post_title' => wp_slash($title),
        'post_content' => wp_slash(json_encode(['fields' => array_combine(array_column($fields, 'id'), $fields)]))]);`,
    fields: { email: '1', name: '2', note: '3', animal: '4', consent: '5' },
    submit: (site, id, { email, name, note, animal, consent }, headers) => {
      const values = [email, name, note, animal, consent].map((value, index) => [
        `wpforms[fields][${index + 1}]`,
        value,
      ]);
      return readAnswer(site(''), new URLSearchParams([['wpforms[id]', id], ...values] as string[][]), headers);
    },
  },
  {
    title: 'Gravity Forms',
    name: 'gravity',
    file: 'gravityforms/gravityforms.php',
    double: double('gravityforms'),
    creation: `update_option('gravity_double', [['id' => 9, 'title' => $title, 'fields' => array_map(fn ($id, $label) => compact('id', 'label'),
      [1, 2, 3, 4, 5], ['E-mail', 'Name', 'Message', 'Animal', 'Agreed'])]]); echo 9;`,
    fields: { email: '1', name: '2', note: '3', animal: '4', consent: '5' },
    submit: (site, id, { email, name, note, animal, consent }, headers) => {
      const [first = '', ...rest] = name.split(' ');
      const values = {
        input_1: email,
        input_2_3: first,
        input_2_6: rest.join(' '),
        input_3: note,
        input_4: animal,
        input_5_1: consent,
      };
      return readAnswer(site(''), new URLSearchParams({ gform_submit: id, ...values }), headers);
    },
  },
];

const CF7_FIELDS = { email: 'your-email', name: 'your-name', note: 'your-message', animal: 'animal' };
