import { readFileSync } from 'node:fs';
import { CONTACT_TYPES } from '../../common/rules/field-rules.ts';
import type { Contact, RegionCode } from '../../src/domain/contact.ts';

/** Contacts that are all the same, or all different, in a studio of the region. */
export interface ComparedContacts {
  /** For example "0800 REIFEN, 0800-reifen in DE". */
  readonly title: string;
  readonly region: RegionCode | null;
  readonly contacts: readonly Contact[];
}

const splitLines = (list: string, type: Contact['type']) =>
  readFileSync(new URL(`../contacts/${list}/${type}.jsonl`, import.meta.url), 'utf8')
    .trim()
    .split('\n');

/** Returns the contacts of a list in test/contacts. */
export const listedContacts = (list: 'valid' | 'invalid'): Contact[] =>
  CONTACT_TYPES.flatMap((type) => splitLines(list, type).map((line) => ({ type, value: JSON.parse(line) })));

/** Returns the rows of a list in test/contacts. */
export const comparedContacts = (list: 'same' | 'different'): ComparedContacts[] =>
  CONTACT_TYPES.flatMap((type) =>
    splitLines(list, type).map((line) => {
      const { region, contacts } = JSON.parse(line);
      const title = `${contacts.slice(0, 2).join(', ')} in ${region ?? 'no region'}`;
      return { title, region, contacts: contacts.map((value: string) => ({ type, value })) };
    }),
  );
