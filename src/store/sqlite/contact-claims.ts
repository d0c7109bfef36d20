import type { DatabaseSync } from 'node:sqlite';

/** Which leads have which claims; to be used within a write. */
export interface ContactClaims {
  /** A lead that has one of them; undefined when they are free. */
  holderOf(studioId: string, contactKeys: readonly string[]): string | undefined;
  /** Gives them to a lead. */
  take(studioId: string, contactKeys: readonly string[], leadId: string): void;
  /** Lets go of what a lead has. */
  free(studioId: string, contactKeys: readonly string[], leadId: string): void;
}

export function contactClaims(database: DatabaseSync): ContactClaims {
  const select = database.prepare('SELECT lead_id FROM contact_claims WHERE studio_id = ? AND contact_key = ?');
  const insert = database.prepare('INSERT INTO contact_claims (studio_id, contact_key, lead_id) VALUES (?, ?, ?)');
  const remove = database.prepare('DELETE FROM contact_claims WHERE studio_id = ? AND contact_key = ? AND lead_id = ?');
  return {
    holderOf(studioId, contactKeys) {
      for (const contactKey of contactKeys) {
        const row = select.get(studioId, contactKey);
        if (row) return row.lead_id as string;
      }
      return undefined;
    },
    take(studioId, contactKeys, leadId) {
      for (const contactKey of contactKeys) insert.run(studioId, contactKey, leadId);
    },
    free(studioId, contactKeys, leadId) {
      for (const contactKey of contactKeys) remove.run(studioId, contactKey, leadId);
    },
  };
}

/** Claims as they stand in a lead's row. */
export const keysAsText = (contactKeys: readonly string[]): string => contactKeys.join(' ');

/** The claims that stand in a lead's row. */
export const keysOf = (text: string): string[] => text.split(' ').filter((key) => key !== '');
