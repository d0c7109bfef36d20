import { buffer } from 'node:stream/consumers';
import type { Contact } from '../src/domain/contact.ts';
import { Faults } from '../src/domain/refusal.ts';
import { isContact, parseUtf8Json } from './lead-correction.ts';

export const CONTACT_HELP = `
Reads the contact from standard input, as JSON with the fields of the public API:
  {"type":"email","value":"ada@example.org"}
It is not an argument, because other users of the machine can see those.`;

/** @throws Refusal INVALID_REQUEST */
export async function readContact(input: NodeJS.ReadableStream): Promise<Contact> {
  const read = parseUtf8Json(await buffer(input));
  if (isContact(read)) return read;
  const faults = new Faults();
  faults.note('the standard input', 'must be a JSON object with a type, email or phone, and a value');
  throw faults.refusal();
}
