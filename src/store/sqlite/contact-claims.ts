import type { DatabaseSync } from 'node:sqlite';
import { isOpen, type LeadStage } from '../../domain/lead.ts';

/** Which leads have which claims; to be used within a write. */
export interface ContactClaims {
  /** An open lead that has one of them; undefined when they are free. */
  holderOf(studioId: string, contactKeys: readonly string[]): string | undefined;
  /** Gives them to a lead. */
  take(studioId: string, contactKeys: readonly string[], leadId: string): void;
  /** Lets go of what a lead has. */
  free(studioId: string, contactKeys: readonly string[], leadId: string): void;
}

export function contactClaims(database: DatabaseSync): ContactClaims {
  const select = database.prepare('SELECT lead_id FROM contact_claims WHERE studio_id = ? AND contact_key = ?');
  const insert = database.prepare('INSERT INTO contact_claims (studio_id, contact_key, lead_id) VALUES (?, ?, ?)');
  const selectStage = database.prepare('SELECT stage FROM leads WHERE studio_id = ? AND id = ?');
  const remove = database.prepare('DELETE FROM contact_claims WHERE studio_id = ? AND contact_key = ? AND lead_id = ?');
  return {
    holderOf(studioId, contactKeys) {
      for (const contactKey of contactKeys) {
        const leadId = select.get(studioId, contactKey)?.lead_id as string | undefined;
        if (leadId === undefined) continue;
        const stage = selectStage.get(studioId, leadId)?.stage as LeadStage | undefined;
        if (stage !== undefined && isOpen(stage)) return leadId;
        // Somebody has closed or deleted the lead by hand, and left its claim.
        remove.run(studioId, contactKey, leadId);
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
