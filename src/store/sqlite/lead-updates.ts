import type { DatabaseSync } from 'node:sqlite';
import { MAX_FORMER_KEYS } from '../../domain/claims.ts';
import { correctedFields } from '../../domain/correction.ts';
import { isOpen, nextUpdate } from '../../domain/lead.ts';
import { claimsOrFault, readableOrThrow } from '../checked.ts';
import type { LeadStore } from '../store.ts';
import { appliedRequests } from './applied-requests.ts';
import { auditWriter } from './audit.ts';
import { contactClaims } from './contact-claims.ts';
import type { GroupCommit } from './group-commit.ts';
import { changeMark } from './lead-changes.ts';
import { prepareLists } from './row-lists.ts';
import { LEAD_COLUMNS, originalJson, presentLeadOf } from './rows.ts';
import { hashBytes, hashesBytes, hashesIn } from './stored-ids.ts';
import { studioNumbers } from './studio-numbers.ts';

/** Corrections of leads, in SQLite. */
export function leadUpdater(database: DatabaseSync, commits: Pick<GroupCommit, 'write'>): LeadStore['updateLead'] {
  const select = prepareLists(
    database,
    `SELECT ${LEAD_COLUMNS}, number, contact_keys FROM leads WHERE studio_number = ? AND id = unhex(?, '-')`,
  );
  const updateFields = database.prepare(`
    UPDATE leads SET
      display_name = ?1, contact_type = ?2, contact_value = ?3, source_id = unhex(?4, '-'), note = ?5, updated_at = ?6,
      original = coalesce(original, ?7), ${changeMark('updated', '?6')}
    WHERE number = ?8`);
  const updateClaims = database.prepare(`
    UPDATE leads SET contact_keys = ?, rule_region = ? WHERE number = ?`);
  const insertFormer = database.prepare(`
    INSERT OR IGNORE INTO former_contacts (studio_number, contact_key, lead_number) VALUES (?, ?, ?)`);
  const countFormer = prepareLists(database, 'SELECT count(*) FROM former_contacts WHERE lead_number = ?');
  const studios = studioNumbers(database);
  const claimed = contactClaims(database);
  const recordEvent = auditWriter(database);
  const requests = appliedRequests(database);

  return ({ studioId, leadId, correction, claims, expectedUpdatedAt, memberId, caller, now, requestId }) =>
    commits.write(() => {
      const studio = studios.inWrite(studioId);
      const row = studio === undefined ? undefined : select.get(studio, leadId);
      const lead = row && readableOrThrow(presentLeadOf(studioId, row));
      if (studio === undefined || !lead) return { kind: 'not-found' };
      if (requests.has(requestId)) return { kind: 'updated', lead };
      if (expectedUpdatedAt && expectedUpdatedAt.getTime() !== lead.updatedAt.getTime()) return { kind: 'stale' };
      const corrected = correctedFields(lead, correction);
      if (corrected.length === 0) {
        requests.add(requestId);
        return { kind: 'unchanged', lead };
      }
      const [number, contactKeys] = row.slice(-2) as [number, Uint8Array];
      if (corrected.includes('contact')) {
        // Unreadable claims cannot be freed.
        const before = readableOrThrow(claimsOrFault(lead, hashesIn(contactKeys)));
        const itself = { number, isOpen: isOpen(lead.stage) };
        const holder = itself.isOpen ? claimed.holderOf(studio, claims.contactKeys, number) : undefined;
        if (holder !== undefined) return { kind: 'already-open', leadId: holder };
        const { contactKeys: wanted, regionCode } = claims;
        // Also claims that its row does not list, if it was changed by hand.
        claimed.free(studio, [...before, ...wanted], itself);
        claimed.take(studio, wanted, itself);
        const [kept] = countFormer.get(number) as [number];
        const remembered = before.slice(0, Math.max(MAX_FORMER_KEYS - kept, 0));
        for (const key of remembered) insertFormer.run(studio, hashBytes(key), number);
        updateClaims.run(hashesBytes(wanted), regionCode, number);
      }
      const updated = { ...lead, ...correction, updatedAt: nextUpdate(lead.updatedAt, now) };
      const { displayName, contact, sourceId, note, updatedAt } = updated;
      updateFields.run(
        displayName,
        contact.type,
        contact.value,
        sourceId,
        note,
        updatedAt.getTime(),
        originalJson(lead),
        number,
      );
      recordEvent({
        studioId,
        leadId,
        action: 'lead-updated',
        memberId,
        caller,
        time: updatedAt,
        to: corrected.join(),
      });
      requests.add(requestId);
      return { kind: 'updated', lead: updated };
    });
}
