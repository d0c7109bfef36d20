import type { DatabaseSync } from 'node:sqlite';
import type { Lead } from '../../domain/lead.ts';
import type { Decide } from '../decisions/decision.ts';
import type { LeadWrite, StoredLead } from '../decisions/leads.ts';
import type { LeadCommand } from '../store.ts';
import { applyingOnce } from './apply-once.ts';
import { contactClaims } from './contact-claims.ts';
import type { GroupCommit } from './group-commit.ts';
import { prepareLists } from './row-lists.ts';
import {
  columns,
  erasedLeadOf,
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
  const applyOnce = applyingOnce(database, commits);

  function read({ studioId, leadId }: LeadCommand): LeadRow | null {
    const studio = studios.inWrite(studioId);
    const row = studio === undefined ? undefined : select.get(studio, leadId);
    if (studio === undefined || !row) return null;
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

  function store({ studio, number, lead, contactKeys }: LeadRow, write: LeadWrite) {
    const { fields, mark, claims, original = null, isErasure } = write;
    const holder = claims?.isOpen ? claimed.holderAfterFreeingStale(studio, claims.contactKeys, number) : undefined;
    if (holder !== undefined) return { kind: 'already-open', leadId: holder };
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

  return <Command extends LeadCommand, Outcome>(decide: Decide<StoredLead, Command, Outcome, LeadWrite>) =>
    (command: Command) =>
      applyOnce<LeadRow | null, LeadWrite, Outcome>({
        subject: { studioId: command.studioId, leadId: command.leadId },
        requestId: command.requestId,
        read: () => read(command),
        decide: (found, isApplied) => decide(found, command, isApplied),
        write: (found, write) => store(found as LeadRow, write) as Outcome | undefined,
      });
}
