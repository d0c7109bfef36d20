import { buffer } from 'node:stream/consumers';
import type { Contact } from '../src/domain/contact.ts';
import { CORRECTABLE_FIELDS } from '../src/domain/correction.ts';
import { Faults } from '../src/domain/refusal.ts';
import type { UpdateLeadCommand } from '../src/usecases/update-lead.ts';

/** What is told of the input in the help. */
export const CORRECTION_HELP = `
The new values come from the standard input, as JSON in the words of the public API; what is not there stays as it is, and null takes
a source or note away:
  {"displayName":"Ada","contact":{"type":"email","value":"ada@example.org"},"sourceId":null,"note":"Moved."}
They are no arguments, because others on the machine can see these.`;

/** What is no UTF-8 is refused: stored, it would be something else than was meant. */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Reads what of a lead is to be corrected. @throws Refusal INVALID_REQUEST */
export async function readCorrection(input: NodeJS.ReadableStream): Promise<UpdateLeadCommand['fields']> {
  const read = parsed(await buffer(input));
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

/** What a text in JSON is; undefined when it is none. */
export function parsed(json: Uint8Array): unknown {
  try {
    return JSON.parse(UTF8.decode(json));
  } catch {
    return undefined;
  }
}

/** What is wrong with the kind of a value; its text is looked at later. */
function faultOf(name: string, value: unknown): string | undefined {
  if (name === 'contact') return isContact(value) ? undefined : 'must have a type, email or phone, and a value';
  const mayBeNull = name !== 'displayName';
  if (typeof value === 'string' || (mayBeNull && value === null)) return undefined;
  return mayBeNull ? 'must be a text or null' : 'must be a text';
}

/** Whether a value is a contact as the public API has it; its text is looked at later. */
export function isContact(value: unknown): value is Contact {
  const { type, value: text, ...more } = Object(value);
  return (type === 'email' || type === 'phone') && typeof text === 'string' && Object.keys(more).length === 0;
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);
