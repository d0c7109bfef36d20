import type { LeadCapture } from './api-types.ts';
import { asWritten } from './as-written.ts';
import { CAPTURE_RULES } from './capture-rules.ts';

/**
 * Returns why the service would refuse a lead, in the words and with the keys of `fields` of its problem, such as
 * `contact.value`; empty: it accepts the lead, except that only it knows the sources of a studio. Checks the lead as an
 * outbox stores it: without a blank `note` or `sourceId`, and with one character for each line break of the note. Call it
 * before you thank a visitor.
 */
export function faultsOf(capture: LeadCapture): Record<string, string[]> {
  const sent: LeadCapture = JSON.parse(JSON.stringify(capture));
  const { displayName, contact, sourceId, note, ...others } = asWritten(sent);
  const { type, value, ...otherParts } = Object(contact);
  const faults: Record<string, string[]> = {};
  const check = (field: string, text: unknown, rules = CAPTURE_RULES[field] ?? []) => {
    const isText = typeof text === 'string';
    const fault = isText ? rules.find(([pattern]) => !pattern.test(text))?.[1] : 'must be a string';
    if (fault) faults[field] = [fault];
  };
  check('displayName', displayName);
  if (type === 'email' || type === 'phone') check('contact.value', value, CAPTURE_RULES[type]);
  else faults['contact.type'] = ['must be email or phone'];
  if (sourceId !== undefined && sourceId !== null) check('sourceId', sourceId);
  if (note !== undefined && note !== null) check('note', note);
  for (const name of Object.keys(others)) faults[name] = ['is not a known property'];
  for (const name of Object.keys(otherParts)) faults[`contact.${name}`] = ['is not a known property'];
  return faults;
}
