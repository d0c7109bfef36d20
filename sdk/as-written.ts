import type { LeadCapture } from './api-types.ts';
import { OPTIONAL_TEXTS } from './capture-rules.ts';

/**
 * Returns what the visitor wrote: forms post fields left empty, which the service refuses, and each line break as two
 * characters although `maxlength` counts one.
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
