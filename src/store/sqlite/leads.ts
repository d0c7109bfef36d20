import { assert } from '../../../common/invariants.ts';
import { DEFAULT_CONSUMER } from '../../domain/consumer.ts';
import type { RegionCode } from '../../domain/contact.ts';
import { isOpen, type Lead, type LeadStage } from '../../domain/lead.ts';
import { replayOutcome } from '../../domain/lead-creation.ts';
import { type Decide, eventOfAct } from '../decisions/decision.ts';
import {
  creationEvent,
  decideEnquiry,
  decideLeadErasure,
  decideLeadStage,
  decideLeadUpdate,
  isKeyOfContact,
  KEY_RULE,
  type LeadWrite,
  type StoredLead,
} from '../decisions/leads.ts';
import type { LeadChangeStore, LeadCommand } from '../port/lead-changes.ts';
import type { LeadCreationStore } from '../port/lead-creation.ts';
import type { LeadDeletionStore, LeadErasureStore } from '../port/lead-erasure.ts';
import type { Connection } from './connection.ts';
import {
  BY_ID,
  CREATION,
  columns,
  creationFromRow,
  enquiryTargetFromRow,
  erasedLeadFromRow,
  hashBytes,
  hashesBytes,
  hashesIn,
  hashText,
  idText,
  LEAD_COLUMNS,
  LEAD_WITH_PENDING,
  type ListRow,
  ofStudio,
  originalJson,
  PERSONAL,
  type Prepare,
  pendingFromRow,
  pendingValues,
  presentLeadFromRow,
  SET_PENDING,
  WHOLE_LEAD,
} from './rows.ts';

/**
 * The writes of leads and their uniqueness keys, in SQLite. Erased data is overwritten in the file (`secure_delete`) once
 * the log is checkpointed.
 */
export function sqliteLeadWrites(connection: Connection): LeadCreationStore & LeadChangeStore & LeadErasureStore {
  const keys = uniquenessKeys(connection.prepare);
  const write = leadWriter(connection, keys);
  return {
    createLead: leadCreator(connection, keys),
    changeLeadStage: write(decideLeadStage),
    updateLead: write(decideLeadUpdate),
    eraseLead: write(decideLeadErasure),
    ...deletion(connection, keys),
  };
}

type Doomed = [number: number, studio: number, id: string, contactKeys: string];

/** Returns functions that delete leads of a studio, with all their stored data. */
function deletion({ prepare, plainCommits, recordEvent }: Connection, uniqueness: UniquenessKeys): LeadDeletionStore {
  const selectDoomed = `SELECT number, studio_number, hex(id), hex(contact_keys) FROM leads WHERE ${ofStudio()}`;
  const select = prepare<Doomed>(`${selectDoomed} ORDER BY id LIMIT ? + 0`);
  const selectErased = prepare<Doomed>(`
    ${selectDoomed} AND id IN (SELECT unhex(value, '-') FROM json_each(?)) AND erased_at <= ?
      AND NOT EXISTS (
        SELECT 1 FROM consumers WHERE changed_since IS NOT NULL
          OR EXISTS (SELECT 1 FROM deliveries WHERE consumer = consumers.number AND lead = leads.number))`);
  const deleteEvents = prepare('DELETE FROM audit_events WHERE studio_id = ? AND lead_id = ?');
  const removals = [
    `deliveries WHERE consumer = ${DEFAULT_CONSUMER.number} AND lead`,
    'deliveries WHERE consumer IN (SELECT number FROM consumers) AND lead',
    'former_contacts WHERE lead_number',
    'leads WHERE number',
  ].map((where) => prepare(`DELETE FROM ${where} = ?`));
  const remove = (studioId: string, rows: readonly Doomed[]): number => {
    for (const [number, studio, id, keys] of rows) {
      uniqueness.free(studio, hashesIn(keys) ?? uniqueness.findKeys(studio, number), number);
      deleteEvents.run(studioId, idText(id));
      for (const removal of removals) removal.run(number);
    }
    return rows.length;
  };
  return {
    deleteLeads: (studioId, limit, by) =>
      plainCommits.write(() => {
        const rows = select.all(studioId, limit);
        // Recorded before the events of leads are deleted, so that the numbers of events only grow.
        if (rows.length > 0)
          recordEvent({ studioId, ...eventOfAct(by, { action: 'studio-emptied', to: `${rows.length}` }) });
        return remove(studioId, rows);
      }),

    deleteErasedLeads: (studioId, leadIds, erasedUntil) =>
      plainCommits.write(() =>
        remove(studioId, selectErased.all(studioId, JSON.stringify(leadIds), erasedUntil.getTime())),
      ),
  };
}

function leadCreator(connection: Connection, uniqueness: UniquenessKeys): LeadCreationStore['createLead'] {
  const { prepare, plainCommits, recordEvent } = connection;
  const findByKey = creationFinder(prepare);
  const storeEnquiry = enquiryWriter(prepare);
  const selectStudio = prepare<[number: number]>('SELECT number FROM studio_numbers WHERE studio_id = ?');
  const insertStudio = prepare('INSERT INTO studio_numbers (studio_id) VALUES (?)');
  const insert = prepare(`
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
    return plainCommits.write(() => {
      const studio = Number(selectStudio.get(studioId)?.[0] ?? insertStudio.run(studioId).lastInsertRowid);
      const holder = isOpen(lead.stage) ? uniqueness.holderAfterFreeingStale(studioId, studio, contactKeys) : undefined;
      const number = holder === undefined ? insertLead(studio) : undefined;
      if (number !== undefined) {
        uniqueness.take(studio, contactKeys, { number, isOpen: isOpen(lead.stage) });
        if (by) recordEvent({ studioId, leadId: id, ...creationEvent(lead, { ...by, now }) });
        return { kind: 'created', lead };
      }
      const earlier = findByKey(studioId, idempotencyKey);
      if (earlier) return replayOutcome(earlier, fingerprint);
      assert(holder !== undefined, 'creation_has_outcome');
      if (keepsEnquiry) storeEnquiry(holder.number, lead, idempotencyKey);
      return { kind: 'already-open', leadId: holder.id };
    });

    /** Returns the number of the lead; undefined: its idempotency key or id exists already. */
    function insertLead(studio: number): number | undefined {
      // Positional, because binding by name takes as long as the rest of the statement.
      const { changes, lastInsertRowid } = insert.run(
        studio,
        id,
        ...PERSONAL.map((each) => each.readFrom(lead)),
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

/** Returns a function that stores a refused creation as an enquiry of a lead. Must be called within a write. */
function enquiryWriter(prepare: Prepare) {
  const select = prepare(`SELECT ${LEAD_WITH_PENDING.sql} FROM leads WHERE number = ?`);
  const update = prepare(`UPDATE leads SET original = :original, ${SET_PENDING} WHERE number = :number`);
  return (number: number, refused: Lead, idempotencyKey: string): void => {
    const found = enquiryTargetFromRow(refused.studioId, select.get(number) as ListRow);
    const write = decideEnquiry(found, refused, idempotencyKey);
    if (!write) return;
    const { changes } = update.run({
      number,
      original: JSON.stringify(write.original),
      ...pendingValues(write.pending),
    });
    assert(changes === 1, 'one_row_by_number');
  };
}

export function creationFinder(prepare: Prepare) {
  const select = prepare(`
    SELECT ${CREATION.sql} FROM leads WHERE ${ofStudio()} AND idempotency_key = unhex(?, '-')`);
  return (studioId: string, idempotencyKey: string) => {
    const row = select.get(studioId, idempotencyKey);
    return row ? creationFromRow(studioId, row) : null;
  };
}

const STORED = columns({ ...WHOLE_LEAD.sqlByName, number: 'number', studio: 'studio_number' });

interface LeadRow extends StoredLead {
  readonly studio: number;
  readonly number: number;
}

/** Returns a function that carries out decisions about leads. */
function leadWriter({ prepare, applyOnce }: Connection, uniqueness: UniquenessKeys) {
  const select = prepare(`SELECT ${STORED.sql} FROM leads WHERE ${ofStudio()} AND ${BY_ID}`);
  const selectFormer = prepare<[key: string]>(
    'SELECT hex(contact_key) FROM former_contacts WHERE lead_number = ? AND length(contact_key) = 32',
  );
  const update = prepare(`
    UPDATE leads SET
      stage = :stage, updated_at = :updatedAt, original = coalesce(:original, original), ${SET_PENDING},
      ${PERSONAL.map(({ column, value }) => `${column} = ${value}`)}
    WHERE number = :number`);
  const erase = prepare(`
    UPDATE leads SET
      ${PERSONAL.map(({ column, erased }) => `${column} = ${erased}`)}, original = NULL,
      contact_keys = x'', fingerprint = x'', fingerprint_version = 0,
      updated_at = :updatedAt, erased_at = :updatedAt, ${SET_PENDING}
    WHERE number = :number`);
  const updateKeys = prepare(
    `UPDATE leads SET contact_keys = ?, rule_version = ${KEY_RULE}, rule_region = ? WHERE number = ?`,
  );
  const insertFormer = prepare(`
    INSERT OR IGNORE INTO former_contacts (studio_number, contact_key, lead_number) VALUES (?, ?, ?)`);
  const deleteFormer = prepare('DELETE FROM former_contacts WHERE lead_number = ?');

  function read({ studioId, leadId }: LeadCommand): LeadRow | null {
    const row = select.get(studioId, leadId);
    if (!row) return null;
    const { at } = STORED;
    const [studio, number] = [row[at.studio] as number, row[at.number] as number];
    return {
      studio,
      number,
      lead: presentLeadFromRow(studioId, row),
      remaining: erasedLeadFromRow(studioId, row),
      isCorrected: row[at.original] !== null,
      contactKeys: hashesIn(row[at.contactKeys] as string) ?? uniqueness.findKeys(studio, number),
      formerKeys: selectFormer.all(number).map(([key]) => hashText(key)),
      pending: pendingFromRow(row),
    };
  }

  function store(studioId: string, { studio, number, lead, contactKeys }: LeadRow, write: LeadWrite) {
    const { fields, pending, keys, original = null, isErasure } = write;
    const holder = keys?.isOpen
      ? uniqueness.holderAfterFreeingStale(studioId, studio, keys.contactKeys, number)
      : undefined;
    if (holder !== undefined) return { kind: 'already-open', leadId: holder.id };
    const common = { number, updatedAt: fields.updatedAt.getTime(), ...pendingValues(pending) };
    // Includes keys that the lead's row does not list, because somebody may have changed it by hand.
    if (keys || isErasure) uniqueness.free(studio, [...contactKeys, ...(keys?.contactKeys ?? [])], number);
    if (isErasure) {
      deleteFormer.run(number);
      assert(erase.run(common).changes === 1, 'one_row_by_number');
      return undefined;
    }
    if (keys) {
      uniqueness.take(studio, keys.contactKeys, { number, isOpen: keys.isOpen });
      for (const key of keys.formerKeys) insertFormer.run(studio, hashBytes(key), number);
      updateKeys.run(hashesBytes(keys.contactKeys), keys.regionCode, number);
    }
    const leadNow = { ...(lead as Lead), ...fields };
    const named = { ...common, stage: leadNow.stage, original: original && originalJson(original) };
    const { changes } = update.run(named, ...PERSONAL.map((each) => each.readFrom(leadNow)));
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
        write: (write, found) => store(command.studioId, found as LeadRow, write) as Outcome | undefined,
      });
}

const KEY_BYTES = 32;
const NUMBER_BYTES = 8;

type UniquenessKeys = ReturnType<typeof uniquenessKeys>;

/**
 * The uniqueness keys of leads. Must be used within a write. An open lead's entry is the contact key itself. A closed
 * lead's entry is the key followed by the lead's number. All leads of a contact are therefore in one range of one index.
 */
function uniquenessKeys(prepare: Prepare) {
  const select = prepare<[number, id: string, LeadStage | null, version: number, RegionCode]>(`
    SELECT lead_number, hex(id), stage, rule_version, rule_region
    FROM contact_claims LEFT JOIN leads ON leads.number = lead_number
    WHERE contact_claims.studio_number = ? AND contact_key = ?`);
  const selectLead = prepare(`SELECT ${LEAD_COLUMNS.sql} FROM leads WHERE number = ?`);
  const insert = prepare('INSERT INTO contact_claims (studio_number, contact_key, lead_number) VALUES (?, ?, ?)');
  const remove = prepare(
    'DELETE FROM contact_claims WHERE studio_number = ? AND contact_key IN (?, ?) AND lead_number = ?',
  );
  const selectKeys = prepare<[key: string]>(`
    SELECT hex(substr(contact_key, 1, ${KEY_BYTES})) FROM contact_claims
    WHERE studio_number = ? AND lead_number = ? AND length(contact_key) >= ${KEY_BYTES}`);

  function take(studio: number, contactKeys: readonly string[], lead: NumberedLead): void {
    for (const key of contactKeys) insert.run(studio, encodeEntry(key, lead), lead.number);
  }

  /** Removes keys of a lead, in the forms of open and of closed leads, because somebody may have closed it by hand. */
  function free(studio: number, contactKeys: readonly string[], number: number): void {
    for (const key of contactKeys) {
      const [open, closed] = [true, false].map((isOpen) => encodeEntry(key, { number, isOpen })) as [Buffer, Buffer];
      remove.run(studio, open, closed, number);
    }
  }

  return {
    take,
    free,

    /** Returns an open lead other than `otherThan` that holds one of the keys. Frees keys that are held wrongly. Undefined: all are free now. */
    holderAfterFreeingStale(studioId: string, studio: number, contactKeys: readonly string[], otherThan?: number) {
      for (const contactKey of contactKeys) {
        const found = select.get(studio, hashBytes(contactKey));
        if (found === undefined) continue;
        const [number, id, stage, version, region] = found;
        if (number === otherThan) continue;
        const lead = () => presentLeadFromRow(studioId, selectLead.get(number) as ListRow);
        if (stage !== null && isOpen(stage) && isKeyOfContact(lead, { version, region }, contactKey))
          return { number, id: idText(id) };
        // The lead was closed or deleted by hand, or the key does not belong to its contact. The key still finds a closed lead.
        free(studio, [contactKey], number);
        if (stage !== null) take(studio, [contactKey], { number, isOpen: false });
      }
      return undefined;
    },

    /** Returns the keys of a lead whose own list is unreadable. Scans all keys of the studio. */
    findKeys: (studio: number, number: number): string[] =>
      selectKeys.all(studio, number).map(([key]) => hashText(key)),
  };
}

interface NumberedLead {
  readonly number: number;
  readonly isOpen: boolean;
}

function encodeEntry(contactKey: string, { number, isOpen }: NumberedLead): Buffer {
  const key = hashBytes(contactKey);
  return isOpen ? key : Buffer.concat([key, Buffer.from(number.toString(16).padStart(2 * NUMBER_BYTES, '0'), 'hex')]);
}

export function entryRange(contactKey: string): readonly [Buffer, Buffer] {
  const key = hashBytes(contactKey);
  return [key, Buffer.concat([key, Buffer.alloc(NUMBER_BYTES, 0xff)])];
}
