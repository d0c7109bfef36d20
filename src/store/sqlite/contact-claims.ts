import type { DatabaseSync } from 'node:sqlite';
import { isOpen, type LeadStage } from '../../domain/lead.ts';
import { prepareLists } from './row-lists.ts';
import { hashBytes, idText } from './stored-ids.ts';

/**
 * Which leads have which claims, studios and leads by their numbers; to be used within a write. A claim of an open lead is a key
 * of its contact; a closed lead, which claims nothing, stands behind it: under the key and its own number. So one stretch of one
 * index has all leads of a contact.
 */
export interface ContactClaims {
  /** An open lead that has one of them, by its id, and is not a certain one; undefined when they are free for that one. */
  holderOf(studioNumber: number, contactKeys: readonly string[], otherThan?: number): string | undefined;
  /** Gives them to a lead. */
  take(studioNumber: number, contactKeys: readonly string[], lead: NumberedLead): void;
  /** Lets go of what a lead has. */
  free(studioNumber: number, contactKeys: readonly string[], lead: NumberedLead): void;
}

interface NumberedLead {
  readonly number: number;
  readonly isOpen: boolean;
}

const NUMBER_BYTES = 8;

export function contactClaims(database: DatabaseSync): ContactClaims {
  const select = prepareLists(
    database,
    `SELECT lead_number, hex(leads.id), leads.stage
    FROM contact_claims LEFT JOIN leads ON leads.number = lead_number
    WHERE contact_claims.studio_number = ? AND contact_key = ?`,
  );
  const insert = database.prepare(
    'INSERT INTO contact_claims (studio_number, contact_key, lead_number) VALUES (?, ?, ?)',
  );
  const remove = database.prepare(
    'DELETE FROM contact_claims WHERE studio_number = ? AND contact_key = ? AND lead_number = ?',
  );
  return {
    holderOf(studioNumber, contactKeys, otherThan) {
      for (const contactKey of contactKeys) {
        const claim = select.get(studioNumber, hashBytes(contactKey));
        if (claim === undefined) continue;
        const [leadNumber, id, stage] = claim as [number, string, LeadStage | null];
        if (leadNumber === otherThan) continue;
        if (stage !== null && isOpen(stage)) return idText(id);
        // Somebody has closed or deleted the lead by hand, and left its claim.
        remove.run(studioNumber, hashBytes(contactKey), leadNumber);
      }
      return undefined;
    },
    take(studioNumber, contactKeys, lead) {
      for (const key of contactKeys) insert.run(studioNumber, entryOf(key, lead), lead.number);
    },
    free(studioNumber, contactKeys, lead) {
      for (const key of contactKeys) remove.run(studioNumber, entryOf(key, lead), lead.number);
    },
  };
}

function entryOf(contactKey: string, { number, isOpen }: NumberedLead): Buffer {
  const key = hashBytes(contactKey);
  if (isOpen) return key;
  const entry = Buffer.alloc(key.length + NUMBER_BYTES);
  key.copy(entry);
  entry.writeBigUInt64BE(BigInt(number), key.length);
  return entry;
}

/** The first and the last entry that there can be under a key. */
export function entriesOf(contactKey: string): readonly [Buffer, Buffer] {
  const key = hashBytes(contactKey);
  return [key, Buffer.concat([key, Buffer.alloc(NUMBER_BYTES, 0xff)])];
}
