import type { DatabaseSync } from 'node:sqlite';
import { isOpen, type LeadStage } from '../../domain/lead.ts';
import { prepareLists } from './row-lists.ts';
import { hashBytes, hashText, idText } from './stored-ids.ts';

/**
 * The claims of leads; to be used within a write. The entry of an open lead is a contact key. A closed lead claims
 * nothing; its entry is the key followed by its own number. So all leads of a contact are in one range of one index.
 */
export interface ContactClaims {
  /** Returns the id of an open lead other than `otherThan` with one of the claims; undefined: they are free, now at least. */
  holderAfterFreeingStale(studioNumber: number, contactKeys: readonly string[], otherThan?: number): string | undefined;
  /** Adds the claims of a lead. */
  take(studioNumber: number, contactKeys: readonly string[], lead: NumberedLead): void;
  /** Removes claims of a lead, also those that it kept when it was closed by hand. */
  free(studioNumber: number, contactKeys: readonly string[], leadNumber: number): void;
  /** Returns the keys of a lead whose own list of them is unreadable. Scans all claims of the studio. */
  of(studioNumber: number, leadNumber: number): string[];
}

interface NumberedLead {
  readonly number: number;
  readonly isOpen: boolean;
}

const KEY_BYTES = 32;
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
  const insertIfMissing = database.prepare(
    'INSERT OR IGNORE INTO contact_claims (studio_number, contact_key, lead_number) VALUES (?, ?, ?)',
  );
  const remove = database.prepare(
    'DELETE FROM contact_claims WHERE studio_number = ? AND contact_key = ? AND lead_number = ?',
  );
  const selectOf = prepareLists(
    database,
    `SELECT substr(contact_key, 1, ${KEY_BYTES}) FROM contact_claims
    WHERE studio_number = ? AND lead_number = ? AND length(contact_key) >= ${KEY_BYTES}`,
  );
  return {
    free(studioNumber, contactKeys, number) {
      for (const key of contactKeys)
        for (const isOpen of [true, false]) remove.run(studioNumber, entryOf(key, { number, isOpen }), number);
    },
    of: (studioNumber, leadNumber) =>
      selectOf.all(studioNumber, leadNumber).map(([key]) => hashText(key as Uint8Array)),
    holderAfterFreeingStale(studioNumber, contactKeys, otherThan) {
      for (const contactKey of contactKeys) {
        const claim = select.get(studioNumber, hashBytes(contactKey));
        if (claim === undefined) continue;
        const [leadNumber, id, stage] = claim as [number, string, LeadStage | null];
        if (leadNumber === otherThan) continue;
        if (stage !== null && isOpen(stage)) return idText(id);
        // The lead was closed or deleted by hand, and its claim left behind. A closed one is still found by its contact.
        remove.run(studioNumber, hashBytes(contactKey), leadNumber);
        if (stage === null) continue;
        const entry = entryOf(contactKey, { number: leadNumber, isOpen: false });
        insertIfMissing.run(studioNumber, entry, leadNumber);
      }
      return undefined;
    },
    take(studioNumber, contactKeys, lead) {
      for (const key of contactKeys) insert.run(studioNumber, entryOf(key, lead), lead.number);
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

/** The range of all entries of a contact key. */
export function entryRange(contactKey: string): readonly [Buffer, Buffer] {
  const key = hashBytes(contactKey);
  return [key, Buffer.concat([key, Buffer.alloc(NUMBER_BYTES, 0xff)])];
}
