import type { DatabaseSync } from 'node:sqlite';
import type { Lead } from '../../domain/lead.ts';
import type { Decision } from '../decisions/decision.ts';
import type { LeadWrite, StoredLead } from '../decisions/leads.ts';
import type { LeadCommand } from '../store.ts';
import { appliedRequests } from './applied-requests.ts';
import { auditWriter } from './audit.ts';
import { contactClaims } from './contact-claims.ts';
import type { GroupCommit } from './group-commit.ts';
import { prepareLists } from './row-lists.ts';
import {
  columns,
  erasedLeadOf,
  type ListRow,
  MARKED_LEAD,
  markOf,
  markValues,
  originalJson,
  presentLeadOf,
  SET_MARK,
} from './rows.ts';
import { hashBytes, hashesBytes, hashesIn, hashText } from './stored-ids.ts';
import { studioNumbers } from './studio-numbers.ts';

const STORED = columns({
  ...MARKED_LEAD.sqlOf,
  number: 'number',
  contactKeys: 'contact_keys',
  isCorrected: 'original IS NOT NULL',
});

interface LeadRow extends StoredLead {
  readonly studio: number;
  readonly number: number;
}

/** Returns a function that carries out what is decided about leads. */
export function leadWriter(database: DatabaseSync, commits: Pick<GroupCommit, 'write'>) {
  const select = prepareLists(
    database,
    `SELECT ${STORED.sql} FROM leads WHERE studio_number = ? AND id = unhex(?, '-')`,
  );
  const selectFormer = prepareLists(
    database,
    'SELECT contact_key FROM former_contacts WHERE lead_number = ? AND length(contact_key) = 32',
  );
  const update = database.prepare(`
    UPDATE leads SET
      display_name = :displayName, contact_type = :contactType, contact_value = :contactValue,
      source_id = unhex(:sourceId, '-'), note = :note, stage = :stage, updated_at = :updatedAt,
      original = coalesce(:original, original), ${SET_MARK}
    WHERE number = :number`);
  const erase = database.prepare(`
    UPDATE leads SET
      display_name = '', contact_type = '', contact_value = '', source_id = NULL, note = NULL, original = NULL,
      contact_keys = x'', fingerprint = x'', fingerprint_version = 0,
      updated_at = :updatedAt, erased_at = :updatedAt, ${SET_MARK}
    WHERE number = :number`);
  const updateClaims = database.prepare('UPDATE leads SET contact_keys = ?, rule_region = ? WHERE number = ?');
  const insertFormer = database.prepare(`
    INSERT OR IGNORE INTO former_contacts (studio_number, contact_key, lead_number) VALUES (?, ?, ?)`);
  const deleteFormer = database.prepare('DELETE FROM former_contacts WHERE lead_number = ?');
  const studios = studioNumbers(database);
  const claimed = contactClaims(database);
  const recordEvent = auditWriter(database);
  const requests = appliedRequests(database);

  function storedLead(studioId: string, studio: number, row: ListRow): LeadRow {
    const number = row[STORED.at.number] as number;
    return {
      studio,
      number,
      lead: presentLeadOf(studioId, row),
      remaining: erasedLeadOf(studioId, row),
      isCorrected: row[STORED.at.isCorrected] === 1,
      contactKeys: hashesIn(row[STORED.at.contactKeys] as Uint8Array) ?? claimed.of(studio, number),
      formerKeys: selectFormer.all(number).map(([key]) => hashText(key as Uint8Array)),
      mark: markOf(row),
    };
  }

  /** Stores what was decided, unless another lead has one of the claims; returns its id. */
  function store(found: LeadRow, write: LeadWrite): string | undefined {
    const { studio, number, lead, contactKeys } = found;
    const { fields, mark, claims, original = null, isErasure } = write;
    const holder = claims?.isOpen ? claimed.holderOf(studio, claims.contactKeys, number) : undefined;
    if (holder !== undefined) return holder;
    const common = { number, updatedAt: fields.updatedAt.getTime(), ...markValues(mark) };
    // Also claims that its row does not list, if it was changed by hand.
    if (claims || isErasure) claimed.free(studio, [...contactKeys, ...(claims?.contactKeys ?? [])], number);
    if (isErasure) {
      deleteFormer.run(number);
      erase.run(common);
      return undefined;
    }
    if (claims) {
      claimed.take(studio, claims.contactKeys, { number, isOpen: claims.isOpen });
      for (const key of claims.formerKeys) insertFormer.run(studio, hashBytes(key), number);
      updateClaims.run(hashesBytes(claims.contactKeys), claims.regionCode, number);
    }
    const { displayName, contact, sourceId, note, stage } = { ...(lead as Lead), ...fields };
    const { type: contactType, value: contactValue } = contact;
    const asCreated = original && originalJson(original);
    update.run({ ...common, displayName, contactType, contactValue, sourceId, note, stage, original: asCreated });
    return undefined;
  }

  return <Command extends LeadCommand, Outcome>(
    decide: (found: StoredLead | null, command: Command, isApplied: boolean) => Decision<Outcome, LeadWrite>,
  ) =>
    (command: Command): Promise<Outcome> =>
      commits.write(() => {
        const { studioId, leadId, requestId } = command;
        const studio = studios.inWrite(studioId);
        const row = studio === undefined ? undefined : select.get(studio, leadId);
        const found = studio === undefined || !row ? null : storedLead(studioId, studio, row);
        const decision = decide(found, command, requests.has(requestId));
        if (!('write' in decision)) return decision.outcome;
        const { outcome, write, events = [] } = decision;
        const holder = found && write ? store(found, write) : undefined;
        if (holder !== undefined) return { kind: 'already-open', leadId: holder } as Outcome;
        for (const event of events) recordEvent({ studioId, leadId, ...event });
        requests.add(requestId);
        return outcome;
      });
}
