import { expect } from 'vitest';
import { faultsOf } from '../../sdk/index.ts';
import { decoded } from './forms.ts';
import { POSTED_CAPTURES } from './posted-captures.ts';

/** What a visitor enters. */
export interface PostedForm {
  readonly name: string;
  readonly email: string;
  readonly note: string;
}

/** A message that themes, templates and shortcodes could alter. */
const NOTE = '["a" -- [gallery] {{ 2x3 }} \'&amp;\' :)\r\n<\\b>';

/**
 * Posts all kinds of forms. One that the service accepts must be thanked for (303), except for a blank name. Any other one is thanked for as
 * well, such as white space around an address that the form removes, or is returned with a fault and with all that was entered (422).
 *
 * @returns the number of forms that were thanked for; the caller checks that the service has refused none of them
 */
export async function postForms(post: (form: PostedForm) => Promise<Response>): Promise<number> {
  let thanked = 0;
  for (const [index, [name, capture]] of POSTED_CAPTURES.entries()) {
    const { displayName, contact, note = NOTE } = capture;
    if (contact.type !== 'email') continue;
    // As browsers encode it; each form from another visitor.
    const form = {
      name: displayName.toWellFormed(),
      email: contact.value.replace('grace', `g${index}`).toWellFormed(),
      note: (note ?? '').toWellFormed(),
    };
    const response = await post(form);
    const faults = faultsOf({ displayName: form.name, contact: { type: 'email', value: form.email }, note: form.note });
    const isFaultless = Object.keys(faults).length === 0 && form.name.trim() !== '';
    expect(isFaultless ? [303] : [303, 422], name).toContain(response.status);
    if (response.status === 303) {
      thanked += 1;
    } else {
      const page = decoded(await response.text());
      expect(page, name).toContain('role="alert"');
      for (const text of Object.values(form)) expect(page, name).toContain(text);
    }
  }
  return thanked;
}
