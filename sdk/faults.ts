import type { LeadCapture } from './api-types.ts';
import { asWritten } from './as-written.ts';
import { CAPTURE_RULES, type FaultCode, OPTIONAL_TEXTS } from './capture-rules.ts';

/** A fault in a part of a lead: the service's message, and its code. */
type Fault = readonly [message: string, code: FaultCode];

/**
 * Returns the faults of a lead, with the messages and keys of the service's `fields`, such as `contact.value`. If there are
 * none, the service accepts the lead, unless the studio lacks its source. Also refuses a name without a visible character,
 * which the service accepts. Checks the lead as an outbox stores it: without blank optional texts, and with one character
 * for each line break of the note. Call it before you thank a visitor.
 */
export const faultsOf = (capture: LeadCapture): Record<string, string[]> => each(capture, ([message]) => message);

/** Returns the codes of the faults of `faultsOf`, with the same keys, for a page in another language. */
export const faultCodesOf = (capture: LeadCapture): Record<string, FaultCode[]> => each(capture, ([, code]) => code);

const each = <T>(capture: LeadCapture, part: (fault: Fault) => T): Record<string, T[]> =>
  Object.fromEntries(Object.entries(faultsIn(capture)).map(([field, fault]) => [field, [part(fault)]]));

function faultsIn(capture: LeadCapture): Record<string, Fault> {
  const sent: LeadCapture = JSON.parse(JSON.stringify(capture));
  const { displayName, contact, ...others } = asWritten(sent);
  const { type, value, ...otherParts } = Object(contact);
  const faults: Record<string, Fault> = {};
  const check = (field: string, text: unknown, rules = CAPTURE_RULES[field] ?? []) => {
    const broken = typeof text === 'string' ? rules.find(([pattern]) => !pattern.test(text)) : undefined;
    if (typeof text !== 'string') faults[field] = ['must be a string', 'not_text'];
    else if (broken) faults[field] = [broken[1], broken[2]];
  };
  check('displayName', displayName);
  if (type === 'email' || type === 'phone') check('contact.value', value, CAPTURE_RULES[type]);
  else faults['contact.type'] = ['must be email or phone', 'no_contact_type'];
  for (const name of OPTIONAL_TEXTS) {
    const text = others[name] ?? null;
    if (text !== null) check(name, text);
    delete others[name];
  }
  const unknown = [...Object.keys(others), ...Object.keys(otherParts).map((name) => `contact.${name}`)];
  for (const name of unknown) faults[name] = ['is not a known property', 'unknown_property'];
  return faults;
}
