import type { DatabaseSync } from 'node:sqlite';
import { assert } from '../../../common/invariants.ts';
import { DEFAULT_CONSUMER } from '../../domain/consumer.ts';
import { isOpen, type Lead, type LeadStage } from '../../domain/lead.ts';
import { replayOutcome } from '../../domain/lead-creation.ts';
import { type Decide, eventOfAct } from '../decisions/decision.ts';
import {
  creationEvent,
  decideEnquiry,
  decideLeadErasure,
  decideLeadStage,
  decideLeadUpdate,
  hasKey,
  KEY_RULE,
  type KeyRule,
  type LeadWrite,
  type StoredLead,
} from '../decisions/leads.ts';
import type { LeadChanges, LeadCommand } from '../port/lead-changes.ts';
import type { LeadCreation } from '../port/lead-creation.ts';
import type { LeadErasureStore } from '../port/lead-erasure.ts';
import type { Connection } from './connection.ts';
import {
  CREATION,
  columns,
  creationOf,
  enquiryTargetOf,
  erasedLeadOf,
  hashBytes,
  hashesBytes,
  hashesIn,
  hashText,
  idText,
  LEAD_COLUMNS,
  type ListRow,
  MARKED_LEAD,
  markOf,
  markValues,
  originalJson,
  PERSONAL,
  prepareLists,
  presentLeadOf,
  SET_MARK,
} from './rows.ts';

/**
 * The writes of leads and their claims, in SQLite. `secure_delete` overwrites erased data in the file, too, once the log
 * is checkpointed.
 *
 * @param erased called after the commit of an erasure
 */
export function sqliteLeadWrites(connection: Connection, erased: () => unknown = () => {}) {
  const claims = contactClaims(connection.database);
  const write = leadWriter(connection, claims);
  const eraseLead = write(decideLeadErasure);
  const { deleteLeads, deleteErasedLeads } = leadDeleters(connection, claims);
  return {
    createLead: leadCreator(connection, claims),
    changeLeadStage: write(decideLeadStage),
    updateLead: write(decideLeadUpdate),
    async eraseLead(erasure) {
      const outcome = await eraseLead(erasure);
      if (outcome.kind === 'erased') erased();
      return outcome;
    },
    async deleteLeads(studioId, limit, by) {
      const leads = await deleteLeads(studioId, limit, by);
      if (leads !== 0) erased();
      return leads;
    },
    deleteErasedLeads,
  } satisfies LeadCreation & LeadChanges & LeadErasureStore;
}

/** Returns functions that delete leads of a studio, with all that is kept of them. */
function leadDeleters(
  { database, plainCommits, studios, recordEvent }: Connection,
  claimed: ContactClaims,
): Pick<LeadErasureStore, 'deleteLeads' | 'deleteErasedLeads'> {
  const select = prepareLists(
    database,
    'SELECT number, hex(id), contact_keys FROM leads WHERE studio_number = ? ORDER BY id LIMIT ? + 0',
  );
  const selectErased = prepareLists(
    database,
    `SELECT number, hex(id), contact_keys FROM leads
    WHERE studio_number = ? AND id IN (SELECT unhex(value, '-') FROM json_each(?)) AND erased_at <= ?
      AND NOT EXISTS (
        SELECT 1 FROM consumers WHERE changed_since IS NOT NULL
          OR EXISTS (SELECT 1 FROM deliveries WHERE consumer = consumers.number AND lead = leads.number))`,
  );
  const deleteEvents = database.prepare('DELETE FROM audit_events WHERE studio_id = ? AND lead_id = ?');
  const removals = [
    `deliveries WHERE consumer = ${DEFAULT_CONSUMER.number} AND lead`,
    'deliveries WHERE consumer IN (SELECT number FROM consumers) AND lead',
    'former_contacts WHERE lead_number',
    'leads WHERE number',
  ].map((where) => database.prepare(`DELETE FROM ${where} = ?`));
  const remove = (studioId: string, studio: number | undefined, rows: readonly ListRow[]): number => {
    for (const [number, id, keys] of rows as [number, string, Uint8Array][]) {
      claimed.free(studio as number, hashesIn(keys) ?? claimed.of(studio as number, number), number);
      deleteEvents.run(studioId, idText(id));
      for (const removal of removals) removal.run(number);
    }
    return rows.length;
  };
  return {
    deleteLeads: (studioId, limit, by) =>
      plainCommits.write(() => {
        const studio = studios.inWrite(studioId);
        const rows = studio === undefined ? [] : select.all(studio, limit);
        // Before the events of leads are deleted: the numbers of events only grow.
        if (rows.length > 0)
          recordEvent({ studioId, ...eventOfAct(by, { action: 'studio-emptied', to: `${rows.length}` }) });
        return remove(studioId, studio, rows);
      }),

    deleteErasedLeads: (studioId, leadIds, erasedUntil) =>
      plainCommits.write(() => {
        const studio = studios.inWrite(studioId);
        const some = [JSON.stringify(leadIds), erasedUntil.getTime()] as const;
        return studio === undefined ? 0 : remove(studioId, studio, selectErased.all(studio, ...some));
      }),
  };
}

function leadCreator(connection: Connection, claimed: ContactClaims): LeadCreation['createLead'] {
  const { database, plainCommits, studios, recordEvent } = connection;
  const findByKey = creationFinder(connection);
  const keepEnquiry = enquiryKeeper(connection);
  const insert = database.prepare(`
    INSERT INTO leads (
      studio_number, id, ${PERSONAL.map(({ column }) => column)}, stage, created_at, updated_at,
      contact_keys, rule_version, rule_region, idempotency_key, fingerprint, fingerprint_version, changed_since, api_key_id
    ) VALUES (
      ?, unhex(?, '-'), ${PERSONAL.map(({ value }) => value)}, ?, ?, ?, ?, ?, ?, unhex(?, '-'), ?, ?, ?, unhex(?, '-')
    )
      ON CONFLICT (studio_number, idempotency_key) DO NOTHING ON CONFLICT (studio_number, id) DO NOTHING`);
  // @rule 4.1.1 4.1.3 4.1.at-once
  return (lead, { idempotencyKey, fingerprint, contactKeys, regionCode }, options = {}) => {
    const { studioId, id, createdAt } = lead;
    const { now = createdAt, keepsEnquiry, by } = options;
    // Caches the studio's number, which a write does not.
    studios.of(studioId);
    return plainCommits.write(() => {
      const studio = studios.assign(studioId);
      const holder = isOpen(lead.stage) ? claimed.holderAfterFreeingStale(lead, studio, contactKeys) : undefined;
      const number = holder === undefined ? insertLead(studio) : undefined;
      if (number !== undefined) {
        claimed.take(studio, contactKeys, { number, isOpen: isOpen(lead.stage) });
        if (by) recordEvent({ studioId, leadId: id, ...creationEvent(lead, { ...by, now }) });
        return { kind: 'created', lead };
      }
      const earlier = findByKey(studioId, studio, idempotencyKey);
      if (earlier) return replayOutcome(earlier, fingerprint);
      assert(holder !== undefined, 'creation_has_outcome');
      if (keepsEnquiry) keepEnquiry(holder.number, lead, idempotencyKey);
      return { kind: 'already-open', leadId: holder.id };
    });

    /** Returns the number of the lead; undefined: its idempotency key or id exists. */
    function insertLead(studio: number): number | undefined {
      // Positional, because binding by name takes as long as the rest of the statement.
      const { changes, lastInsertRowid } = insert.run(
        studio,
        id,
        ...PERSONAL.map((each) => each.of(lead)),
        lead.stage,
        lead.createdAt.getTime(),
        lead.updatedAt.getTime(),
        hashesBytes(contactKeys),
        KEY_RULE,
        regionCode,
        idempotencyKey,
        hashBytes(fingerprint.sha256),
        fingerprint.version,
        now.getTime(),
        lead.apiKeyId ?? null,
      );
      return changes === 1 ? Number(lastInsertRowid) : undefined;
    }
  };
}

/** Returns a function that keeps what a refused creation says at a lead, within its write. */
function enquiryKeeper({ database }: Connection) {
  const select = prepareLists(database, `SELECT ${MARKED_LEAD.sql} FROM leads WHERE number = ?`);
  const update = database.prepare(`UPDATE leads SET original = :original, ${SET_MARK} WHERE number = :number`);
  return (number: number, refused: Lead, idempotencyKey: string): void => {
    const found = enquiryTargetOf(refused.studioId, select.get(number) as ListRow);
    const write = decideEnquiry(found, refused, idempotencyKey);
    if (!write) return;
    const { changes } = update.run({ number, original: JSON.stringify(write.original), ...markValues(write.mark) });
    assert(changes === 1, 'one_row_by_number');
  };
}

export function creationFinder({ database }: Connection) {
  const select = prepareLists(
    database,
    `SELECT ${CREATION.sql} FROM leads WHERE studio_number = ? AND idempotency_key = unhex(?, '-')`,
  );
  return (studioId: string, studio: number | undefined, idempotencyKey: string) => {
    const row = studio === undefined ? undefined : select.get(studio, idempotencyKey);
    return row ? creationOf(studioId, row) : null;
  };
}

const STORED = columns({ ...MARKED_LEAD.sqlOf, number: 'number', contactKeys: 'contact_keys' });

interface LeadRow extends StoredLead {
  readonly studio: number;
  readonly number: number;
}

/** Returns a function that carries out what is decided about leads. */
function leadWriter({ database, studios, applyOnce }: Connection, claimed: ContactClaims) {
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
      stage = :stage, updated_at = :updatedAt, original = coalesce(:original, original), ${SET_MARK},
      ${PERSONAL.map(({ column, value }) => `${column} = ${value}`)}
    WHERE number = :number`);
  const erase = database.prepare(`
    UPDATE leads SET
      ${PERSONAL.map(({ column, erased }) => `${column} = ${erased}`)}, original = NULL,
      contact_keys = x'', fingerprint = x'', fingerprint_version = 0,
      updated_at = :updatedAt, erased_at = :updatedAt, ${SET_MARK}
    WHERE number = :number`);
  const updateClaims = database.prepare(
    `UPDATE leads SET contact_keys = ?, rule_version = ${KEY_RULE}, rule_region = ? WHERE number = ?`,
  );
  const insertFormer = database.prepare(`
    INSERT OR IGNORE INTO former_contacts (studio_number, contact_key, lead_number) VALUES (?, ?, ?)`);
  const deleteFormer = database.prepare('DELETE FROM former_contacts WHERE lead_number = ?');

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
      isCorrected: row[STORED.at.original] !== null,
      contactKeys: hashesIn(row[STORED.at.contactKeys] as Uint8Array) ?? claimed.of(studio, number),
      formerKeys: selectFormer.all(number).map(([key]) => hashText(key as Uint8Array)),
      mark: markOf(row),
    };
  }

  function store({ studio, number, lead, contactKeys }: LeadRow, write: LeadWrite) {
    const { fields, mark, claims, original = null, isErasure } = write;
    const holder = claims?.isOpen
      ? claimed.holderAfterFreeingStale(lead as Lead, studio, claims.contactKeys, number)
      : undefined;
    if (holder !== undefined) return { kind: 'already-open', leadId: holder.id };
    const common = { number, updatedAt: fields.updatedAt.getTime(), ...markValues(mark) };
    // Also claims that its row does not list, if it was changed by hand.
    if (claims || isErasure) claimed.free(studio, [...contactKeys, ...(claims?.contactKeys ?? [])], number);
    if (isErasure) {
      deleteFormer.run(number);
      assert(erase.run(common).changes === 1, 'one_row_by_number');
      return undefined;
    }
    if (claims) {
      claimed.take(studio, claims.contactKeys, { number, isOpen: claims.isOpen });
      for (const key of claims.formerKeys) insertFormer.run(studio, hashBytes(key), number);
      updateClaims.run(hashesBytes(claims.contactKeys), claims.regionCode, number);
    }
    const leadNow = { ...(lead as Lead), ...fields };
    const named = { ...common, stage: leadNow.stage, original: original && originalJson(original) };
    const { changes } = update.run(named, ...PERSONAL.map((each) => each.of(leadNow)));
    assert(changes === 1, 'one_row_by_number');
    return undefined;
  }

  return <Command extends LeadCommand, Outcome>(decide: Decide<StoredLead, Command, Outcome, LeadWrite>) =>
    (command: Command) =>
      applyOnce<LeadRow | null, LeadWrite, Outcome>({
        subject: { studioId: command.studioId, leadId: command.leadId },
        requestId: command.requestId,
        read: () => read(command),
        decide: (found, isApplied) => decide(found, command, isApplied),
        write: (write, found) => store(found as LeadRow, write) as Outcome | undefined,
      });
}

interface NumberedLead {
  readonly number: number;
  readonly isOpen: boolean;
}

/** The columns of the lead that has a claim. */
const CLAIMING = columns({
  ...LEAD_COLUMNS.sqlOf,
  number: 'lead_number',
  version: 'rule_version',
  region: 'rule_region',
});

const KEY_BYTES = 32;
const NUMBER_BYTES = 8;

type ContactClaims = ReturnType<typeof contactClaims>;

/**
 * The claims of leads; to be used within a write. The entry of an open lead is a contact key. A closed lead claims
 * nothing; its entry is the key followed by its own number. So all leads of a contact are in one range of one index.
 */
function contactClaims(database: DatabaseSync) {
  const select = prepareLists(
    database,
    `SELECT ${CLAIMING.sql}
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
    /** Returns an open lead other than `otherThan` with one of the claims; undefined: they are free, now at least. */
    holderAfterFreeingStale(
      { studioId }: Pick<Lead, 'studioId'>,
      studio: number,
      contactKeys: readonly string[],
      otherThan?: number,
    ) {
      for (const contactKey of contactKeys) {
        const claim = select.get(studio, hashBytes(contactKey));
        if (claim === undefined) continue;
        const number = claim[CLAIMING.at.number] as number;
        if (number === otherThan) continue;
        const stage = claim[CLAIMING.at.stage] as LeadStage | null;
        const rule = { version: claim[CLAIMING.at.version], region: claim[CLAIMING.at.region] } as KeyRule;
        if (stage !== null && isOpen(stage) && hasKey(() => presentLeadOf(studioId, claim), rule, contactKey))
          return { number, id: idText(claim[CLAIMING.at.id] as string) };
        // The lead was closed or deleted by hand, or is not of this contact. It is still found by what it had claimed.
        remove.run(studio, hashBytes(contactKey), number);
        if (stage !== null) insertIfMissing.run(studio, entryOf(contactKey, { number, isOpen: false }), number);
      }
      return undefined;
    },

    take(studio: number, contactKeys: readonly string[], lead: NumberedLead): void {
      for (const key of contactKeys) insert.run(studio, entryOf(key, lead), lead.number);
    },

    /** Removes claims of a lead, also those that it kept when it was closed by hand. */
    free(studio: number, contactKeys: readonly string[], number: number): void {
      for (const key of contactKeys)
        for (const isOpen of [true, false]) remove.run(studio, entryOf(key, { number, isOpen }), number);
    },

    /** Returns the keys of a lead whose own list of them is unreadable. Scans all claims of the studio. */
    of: (studio: number, number: number): string[] =>
      selectOf.all(studio, number).map(([key]) => hashText(key as Uint8Array)),
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

export function entryRange(contactKey: string): readonly [Buffer, Buffer] {
  const key = hashBytes(contactKey);
  return [key, Buffer.concat([key, Buffer.alloc(NUMBER_BYTES, 0xff)])];
}
