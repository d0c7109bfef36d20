import { buffer } from 'node:stream/consumers';
import { isContactType } from '../common/rules/field-rules.ts';
import type { Contact } from '../src/domain/contact.ts';
import { CommandFault } from './command.ts';

export const CONTACT_HELP = `
Reads the contact from standard input, as JSON with the fields of the public API:
  {"type":"email","value":"ada@example.org"}
It is not an argument, because other users of the machine can see those.`;

/** Rejects invalid UTF-8 instead of replacing it. */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Reads a contact. The store's rules check its text. @throws CommandFault */
export async function readContact(input: NodeJS.ReadableStream): Promise<Contact> {
  const bytes = await buffer(input);
  try {
    const { type, value, ...more } = Object(JSON.parse(UTF8.decode(bytes)));
    if (isContactType(type) && typeof value === 'string' && Object.keys(more).length === 0) return { type, value };
  } catch {
    // The input is not JSON.
  }
  throw new CommandFault('the standard input must be a JSON object with a type, email or phone, and a value');
}
