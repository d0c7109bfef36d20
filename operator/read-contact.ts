import { buffer } from 'node:stream/consumers';
import type { Contact } from '../src/domain/contact.ts';
import { Faults } from '../src/domain/refusal.ts';
import { isContact, parsed } from './lead-correction.ts';

/** What is told of the input in the help. */
export const CONTACT_HELP = `
The contact comes from the standard input, as JSON in the words of the public API:
  {"type":"email","value":"ada@example.org"}
It is no argument, because others on the machine can see these.`;

/** Reads a contact. @throws Refusal INVALID_REQUEST */
export async function readContact(input: NodeJS.ReadableStream): Promise<Contact> {
  const read = parsed(await buffer(input));
  if (isContact(read)) return read;
  const faults = new Faults();
  faults.note('the standard input', 'must be a type, email or phone, and a value, in JSON');
  throw faults.refusal();
}
