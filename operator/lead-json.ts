import { buffer } from 'node:stream/consumers';
import { isContactType } from '../common/rules/field-rules.ts';
import type { Contact } from '../src/domain/contact.ts';
import { CORRECTABLE_FIELDS } from '../src/domain/lead.ts';
import { Faults } from '../src/domain/refusal.ts';
import type { UpdateLeadCommand } from '../src/usecases/change-lead.ts';

export const CORRECTION_HELP = `
Reads the new values from standard input, as JSON with the fields of the public
API. Fields that are left out stay unchanged; null removes a source or note:
  {"displayName":"Ada","contact":{"type":"email","value":"ada@example.org"},
   "sourceId":null,"note":"Moved."}
They are not arguments, because other users of the machine can see those.`;

export const CONTACT_HELP = `
Reads the contact from standard input, as JSON with the fields of the public API:
  {"type":"email","value":"ada@example.org"}
It is not an argument, because other users of the machine can see those.`;

/** @throws Refusal INVALID_REQUEST */
export async function readContact(input: NodeJS.ReadableStream): Promise<Contact> {
  const read = await jsonIn(input);
  if (isContact(read)) return read;
  const faults = new Faults();
  faults.note('the standard input', 'must be a JSON object with a type, email or phone, and a value');
  throw faults.refusal();
}

/** Fatal, because invalid UTF-8 would be stored as other text. */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Reads the fields to correct. @throws Refusal INVALID_REQUEST */
export async function readCorrection(input: NodeJS.ReadableStream): Promise<UpdateLeadCommand['fields']> {
  const read = await jsonIn(input);
  const faults = new Faults();
  if (!isObject(read)) faults.note('the standard input', 'must be an object in JSON');
  faults.refuseIfAny();
  for (const [name, value] of Object.entries(read as object)) {
    if (!CORRECTABLE_FIELDS.some((field) => field === name))
      faults.note(name, `must be one of ${CORRECTABLE_FIELDS.join(', ')}`);
    else faults.note(name, faultOf(name, value));
  }
  faults.refuseIfAny();
  return read as UpdateLeadCommand['fields'];
}

/** Reads JSON in UTF-8; undefined when it is invalid. */
async function jsonIn(input: NodeJS.ReadableStream): Promise<unknown> {
  try {
    return JSON.parse(UTF8.decode(await buffer(input)));
  } catch {
    return undefined;
  }
}

/** Returns the fault of a value's type. The store's rules check its text. */
function faultOf(name: string, value: unknown): string | undefined {
  if (name === 'contact') return isContact(value) ? undefined : 'must have a type, email or phone, and a value';
  const mayBeNull = name !== 'displayName';
  if (typeof value === 'string' || (mayBeNull && value === null)) return undefined;
  return mayBeNull ? 'must be a string or null' : 'must be a string';
}

/** Returns whether a value has the shape of a contact of the public API. The store's rules check its text. */
function isContact(value: unknown): value is Contact {
  const { type, value: text, ...more } = Object(value);
  return isContactType(type) && typeof text === 'string' && Object.keys(more).length === 0;
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);
