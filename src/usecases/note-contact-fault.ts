import { contactFault } from '../../common/rules/field-rules.ts';
import type { Contact } from '../domain/contact.ts';
import type { Faults } from '../domain/refusal.ts';

/** Adds the faults of a required contact. @param field its JSON path in the request */
export function noteContactFault(faults: Faults, field: string, contact: Contact | undefined): void {
  if (contact) faults.note(`${field}.${contact.type}`, contactFault(contact.type, contact.value));
  else faults.note(field, 'must have an email or a phone');
}
