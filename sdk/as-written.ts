import type { LeadCapture } from './api-types.ts';
import { OPTIONAL_TEXTS } from './capture-rules.ts';

/**
 * Removes what forms add to a visitor's text: fields left empty, which the service refuses, and the second character of
 * each line break, which `maxlength` does not count.
 */
export function asWritten(data: LeadCapture): LeadCapture {
  const written: { -readonly [field in keyof LeadCapture]: LeadCapture[field] } = { ...data };
  for (const field of OPTIONAL_TEXTS) {
    const value = written[field];
    if (typeof value === 'string' && value.trim() === '') delete written[field];
  }
  if (typeof written.note === 'string') written.note = written.note.replaceAll(/\r\n?/g, '\n');
  return written;
}
