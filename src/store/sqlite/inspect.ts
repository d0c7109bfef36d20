import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { SQLITE_BUSY_MS } from '../../../common/deadlines.ts';
import { isOpen, type LeadStage } from '../../domain/lead.ts';
import { checkedConsumer, checkedListedStudio, checkedRequest, idOrNone, isTime, nameOfRecord } from '../checked.ts';
import {
  FAULTS,
  faultsOfDelivery,
  faultsOfEpoch,
  faultsOfLead,
  faultsOfSlot,
  type InspectedPage,
  type Inspection,
  inspectionOf,
  MAX_NAMED,
  type OnPage,
  unreadableBy,
  type Wrong,
  wrongIf,
} from '../damage.ts';
import { hasKey, type KeyRule } from '../decisions/leads.ts';
import { StoreUnavailable } from '../store.ts';
import { fileFault } from './file-fault.ts';
import { isLocked, resultCodeOf } from './group-commit.ts';
import { entryOf } from './leads.ts';
import { requestIn } from './request-log.ts';
import {
  API_KEY_COLUMNS,
  apiKeyOf,
  auditEventOf,
  CONSUMER_COLUMNS,
  CREATION,
  columns,
  consumerIn,
  creationOf,
  EVENT_COLUMNS,
  enquiriesIn,
  erasedLeadOf,
  FURTHEST,
  hashesIn,
  idText,
  isErased,
  type ListRow,
  leadOf,
  leadSourceOf,
  MARKED_LEAD,
  markOf,
  memberOf,
  number,
  objectIn,
  PERSONAL,
  prepareLists,
  RECORD,
  type Row,
  recordOf,
  STUDIO_FIELDS,
  studioIn,
  timeOrNull,
} from './rows.ts';
import { SCHEMA } from './schema.ts';

/** The number of rows that are read in a transaction. It ends before the log could grow by much. */
const PAGE = 500;

/**
 * Reads all of a database file, and says what cannot be in it. What rows say of each other is read in one transaction, so nothing
 * that is written meanwhile looks wrong. Writes nothing.
 *
 * @throws StoreUnavailable with what is wrong with the file and what to do
 */
export async function inspectSqlite(path: string, onPage: OnPage): Promise<Inspection> {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { readOnly: true, timeout: SQLITE_BUSY_MS });
    return await inspectionOf(pagesOfFile(database), onPage);
  } catch (error) {
    if (resultCodeOf(error) === undefined) throw error;
    const reason = isLocked(error) ? 'is being written to: run it again' : fileFault(error, path);
    throw new StoreUnavailable(`the database file ${path} ${reason}`, error);
  } finally {
    database?.close();
  }
}

async function* pagesOfFile(database: DatabaseSync): AsyncGenerator<InspectedPage> {
  for (const look of [brokenPlaces, missingParts]) {
    const wrong = look(database);
    yield { records: 0, wrong };
    // The rest would fail, or mean nothing. Without an index it only takes longer.
    if (wrong.some(({ record }) => !record.startsWith('index'))) return;
  }
  for (const part of [directory, access, leads, claims, ofLeads, feed, deliveries, events, requests]) {
    for (const page of part(database)) {
      yield page;
      await nextTurn();
    }
  }
}

/** What SQLite itself finds, in one transaction: in the pages, and that trees, indexes and constraints are as they must be. */
function brokenPlaces(database: DatabaseSync): Wrong[] {
  const found = database.prepare(`PRAGMA integrity_check(${MAX_NAMED})`).all();
  const texts = found.flatMap((row) => String(row.integrity_check).split('\n'));
  return texts.filter((text) => text !== 'ok').map((record) => ({ fault: FAULTS.file, record }));
}

const PARTS_OF_SCHEMA = `
  SELECT name AS of_table, 'table ' || name AS part FROM sqlite_schema WHERE type = 'table'
  UNION ALL
  SELECT tables.name, 'column ' || tables.name || '.' || each.name || ' ' || each.type || iif(each."notnull", ' NOT NULL', '')
  FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS each WHERE tables.type = 'table'
  UNION ALL
  SELECT tables.name, 'index ' || each.name || ' on ' || tables.name || ' (' ||
    (SELECT group_concat(name, ', ') FROM pragma_index_info(each.name)) || ')' || iif(each.partial, ' of some rows', '')
  FROM sqlite_schema AS tables, pragma_index_list(tables.name) AS each WHERE tables.type = 'table'`;

/** What a new file has, and this one has not; but for the index of idempotency keys, which is always examined. */
function missingParts(database: DatabaseSync): Wrong[] {
  const fresh = new DatabaseSync(':memory:');
  fresh.exec(SCHEMA);
  const partsOf = (of: DatabaseSync) => of.prepare(PARTS_OF_SCHEMA).all() as { of_table: string; part: string }[];
  const present = new Set(partsOf(database).map(({ part }) => part));
  const missing = partsOf(fresh).filter(({ of_table: table, part }) => {
    const isWithoutTable = part !== `table ${table}` && !present.has(`table ${table}`);
    return !present.has(part) && !isWithoutTable;
  });
  fresh.close();
  return missing.map(({ part: record }) => ({ fault: FAULTS.missing, record }));
}

/** What to read of rows, and by what they are in order: columns of numbers, and behind these others. */
interface Query {
  readonly columns: string;
  readonly from: string;
  readonly numbers?: readonly string[];
  readonly others?: readonly string[];
}

const IDS = { others: ['studio_id', 'id'] };

/** Reads rows page by page. @param check returns what is wrong with a row; it may read what that points to */
function* pagesOf(
  database: DatabaseSync,
  { columns: sql, from, numbers = [], others = [] }: Query,
  check: (row: ListRow) => readonly Wrong[],
): Generator<InspectedPage> {
  const key = [...numbers, ...others];
  // Numbers are text, because a foreign one may be any integer.
  const read = [...numbers.map((column) => `CAST(${column} AS TEXT)`), ...others];
  const bound = [...numbers.map(() => 'CAST(? AS INTEGER)'), ...others.map(() => '?')];
  const select = (condition: string) =>
    prepareLists(database, `SELECT ${sql}, ${read} FROM ${from} WHERE ${condition} ORDER BY ${key} LIMIT ${PAGE}`);
  const [first, behind] = [select('true'), select(`(${key}) > (${bound})`)];
  for (let rows: ListRow[] = [], isFirst = true; isFirst || rows.length === PAGE; isFirst = false) {
    database.exec('BEGIN');
    rows = isFirst ? first.all() : behind.all(...(rows.at(-1) as string[]).slice(-key.length));
    const wrong = rows.flatMap(check);
    database.exec('COMMIT');
    yield { records: rows.length, wrong };
  }
}

/** The same with rows by the names of their columns. */
function* rowsOf(database: DatabaseSync, query: Query, check: (row: Row) => readonly Wrong[]) {
  const described = database.prepare(`SELECT ${query.columns} FROM ${query.from}`).columns();
  const named = (row: ListRow) => Object.fromEntries(described.map(({ name }, at) => [name, row[at]])) as Row;
  yield* pagesOf(database, query, (row) => check(named(row)));
}

/** The tables whose rows are of a studio that was put before. */
const OF_STUDIO = [
  'members',
  'lead_sources',
  'api_keys',
  'former_regions',
  'studios_without_enquiries',
  'test_studios',
  'studio_retentions',
  'studio_numbers',
];

function* directory(database: DatabaseSync): Generator<InspectedPage> {
  yield* rowsOf(database, { columns: `id, ${STUDIO_FIELDS}`, from: 'studios', others: ['id'] }, (row) => [
    ...unreadableBy((report) => checkedListedStudio(studioIn(row), report)),
  ]);
  yield* rowsOf(database, { columns: 'studio_id, id, role', from: 'members', ...IDS }, (row) =>
    unreadableBy(() => memberOf(row)),
  );
  const source = `studio_id, id, name, ${number('enabled')} AS enabled`;
  yield* rowsOf(database, { columns: source, from: 'lead_sources', ...IDS }, (row) =>
    unreadableBy(() => leadSourceOf(row)),
  );
  for (const table of OF_STUDIO) {
    const orphans = database.prepare(
      `SELECT DISTINCT studio_id AS id FROM ${table} WHERE NOT EXISTS (SELECT 1 FROM studios WHERE studios.id = studio_id)`,
    );
    const wrong = orphans.all().map(({ id }) => ({ fault: FAULTS.ofNoStudio, record: `${idOrNone(id)} in ${table}` }));
    yield { records: 0, wrong };
  }
}

const access = (database: DatabaseSync) =>
  rowsOf(database, { columns: API_KEY_COLUMNS, from: 'api_keys', ...IDS }, (row) => [
    ...unreadableBy(() => apiKeyOf(row)),
    ...faultsOfSlot({ slot: row.slot, id: row.id, studioId: row.studio_id }, row.revoked_at !== null),
  ]);

/** A row of it is one of RECORD, too. */
const LEAD = columns({
  ...RECORD.sqlOf,
  ...CREATION.sqlOf,
  ...MARKED_LEAD.sqlOf,
  studioId: 'studio_id',
  hasStudio: 'EXISTS (SELECT 1 FROM studios WHERE studios.id = studio_id)',
  number: 'CAST(leads.number AS TEXT)',
  studio: 'CAST(leads.studio_number AS TEXT)',
  contactKeys: 'contact_keys',
  version: number('rule_version'),
  region: 'rule_region',
  // Of an erased one.
  isPersonal: `${PERSONAL.map(({ column, erased }) => `${column} IS NOT ${erased}`).join(' OR ')} OR original IS NOT NULL
    OR length(contact_keys) + length(fingerprint) > 0
    OR EXISTS (SELECT 1 FROM former_contacts WHERE lead_number = leads.number)`,
});

const rowOf = ({ at }: { readonly at: object }, row: ListRow): ListRow =>
  Object.keys(at).map((name) => row[LEAD.at[name as keyof typeof LEAD.at]] as SQLOutputValue);

function* leads(database: DatabaseSync): Generator<InspectedPage> {
  const { at } = LEAD;
  const holder = prepareLists(
    database,
    'SELECT CAST(lead_number AS TEXT) FROM contact_claims WHERE studio_number = CAST(? AS INTEGER) AND contact_key = ?',
  );
  const from = 'leads LEFT JOIN studio_numbers ON studio_numbers.number = studio_number';
  yield* pagesOf(database, { columns: LEAD.sql, from, numbers: ['leads.number'] }, (row) => {
    const studioId = row[at.studioId] as string;
    const lead = isErased(row) ? erasedLeadOf(studioId, row) : leadOf(studioId, row);
    const holds = (key: string, areOpen: boolean) => {
      const entry = entryOf(key, { number: Number(row[at.number]), isOpen: areOpen });
      return holder.get(row[at.studio] as string, entry)?.[0] === row[at.number];
    };
    const isLeadOpen = isOpen(row[at.stage] as LeadStage);
    const keys = hashesIn(row[at.contactKeys] as Uint8Array);
    const rule = { version: row[at.version], region: row[at.region] } as KeyRule;
    const isFreed = (key: string) => isLeadOpen && holds(key, false) && !hasKey(leadOf(studioId, row), rule, key);
    const areHeld = keys?.every(
      (key) => holds(key, true) !== holds(key, false) && (holds(key, isLeadOpen) || isFreed(key)),
    );
    const kinds = row[at.kinds] as string | null;
    return [
      ...unreadableBy(
        () => lead,
        (report) => recordOf(studioId, row, report),
        () => creationOf(studioId, rowOf(CREATION, row)),
      ),
      ...faultsOfLead({
        lead,
        isClaimed: keys && (isErased(row) || (areHeld && keys.length > 0)),
        hasPersonalData: isErased(row) && row[at.isPersonal] === 1,
        idempotencyKey: idText(row[at.idempotencyKey] as string),
        enquiries: enquiriesIn(row),
        mark: { ...markOf(rowOf(MARKED_LEAD, row)), kinds: kinds === null ? {} : objectIn(kinds) },
      }),
      ...wrongIf(!row[at.hasStudio], FAULTS.ofNoStudio, nameOfLead(studioId, row[at.id])),
    ];
  });
}

const nameOfLead = (studioId: unknown, id: unknown): string =>
  nameOfRecord({ studioId, id: typeof id === 'string' ? idText(id) : id });

/** The other side of claims: each is of a lead that has the key, with its number behind it if the lead is closed. */
const claims = (database: DatabaseSync) =>
  rowsOf(
    database,
    {
      columns: `studio_id, hex(leads.id) AS id,
        leads.number IS NULL OR leads.studio_number <> contact_claims.studio_number
        OR substr(contact_key, 33) NOT IN (x'', unhex(printf('%016X', lead_number)))
        OR length(contact_keys) % 32 = 0 AND instr(contact_keys, substr(contact_key, 1, 32)) % 32 <> 1 AS is_wrong`,
      from: `contact_claims LEFT JOIN leads ON leads.number = lead_number
        LEFT JOIN studio_numbers ON studio_numbers.number = contact_claims.studio_number`,
      numbers: ['contact_claims.studio_number'],
      others: ['contact_key'],
    },
    (row) => wrongIf(row.is_wrong, FAULTS.strayClaim, nameOfLead(row.studio_id, row.id)),
  );

function* ofLeads(database: DatabaseSync): Generator<InspectedPage> {
  const columns =
    'NOT EXISTS (SELECT 1 FROM leads WHERE leads.number = lead_number) AS is_wrong, CAST(lead_number AS TEXT) AS lead';
  for (const [from, ...others] of [['former_contacts', 'contact_key']] as [string, ...string[]][]) {
    yield* rowsOf(database, { columns, from, numbers: ['lead_number'], others }, (row) =>
      wrongIf(row.is_wrong, FAULTS.ofNoLead, `number ${row.lead} in ${from}`),
    );
  }
}

function* feed(database: DatabaseSync): Generator<InspectedPage> {
  const [epoch, restoredTo, time] = ['epoch', 'restored_to', 'time'].map((column) => `${number(column)} AS ${column}`);
  const columns = `${number('number')} AS number, ${CONSUMER_COLUMNS}`;
  yield* rowsOf(database, { columns, from: 'consumers', numbers: ['number'] }, (row) => [
    ...unreadableBy((report) => checkedConsumer(consumerIn(row), report)),
    // There is no next one.
    ...wrongIf(row.number === FURTHEST, FAULTS.consumer, `number ${row.number}`),
  ]);
  yield* rowsOf(database, { columns: `${epoch}, ${restoredTo}`, from: 'database_epoch', numbers: ['id'] }, (row) =>
    faultsOfEpoch({ epoch: row.epoch, restoredTo: timeOrNull(row.restored_to) }),
  );
  yield* rowsOf(database, { columns: `${time}`, from: 'retention_time', numbers: ['one'] }, (row) =>
    wrongIf(!isTime(timeOrNull(row.time)), FAULTS.retention, `${row.time}`),
  );
}

/** Those of a consumer that was removed go by themselves. */
function* deliveries(database: DatabaseSync): Generator<InspectedPage> {
  const [revision, since, due, leadRevision] = ['deliveries.revision', 'since', 'due', 'leads.revision'].map(number);
  const columns = `studio_id, hex(leads.id) AS id, CAST(consumer AS TEXT) AS consumer, ${revision} AS revision, ${since} AS since,
    ${due} AS due, kinds, reason, ${leadRevision} AS lead_revision, leads.number IS NULL AS is_of_none,
    EXISTS (SELECT 1 FROM consumers WHERE consumers.number = consumer) AS is_kept`;
  const from = `deliveries LEFT JOIN leads ON leads.number = lead
    LEFT JOIN studio_numbers ON studio_numbers.number = studio_number`;
  yield* rowsOf(database, { columns, from, numbers: ['consumer', 'lead'] }, (row) => {
    if (!row.is_kept) return [];
    const record = `${nameOfLead(row.studio_id, row.id)} for consumer ${row.consumer}`;
    const [since, due] = [timeOrNull(row.since), timeOrNull(row.due)];
    const { revision, reason, lead_revision: leadRevision } = row;
    return [
      ...wrongIf(row.is_of_none, FAULTS.ofNoLead, record),
      ...faultsOfDelivery(record, { revision, since, due, kinds: objectIn(row.kinds as string), reason, leadRevision }),
    ];
  });
}

const events = (database: DatabaseSync) =>
  rowsOf(
    database,
    {
      columns: `${EVENT_COLUMNS}, CAST(number AS TEXT) AS place,
        lead_id IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM leads JOIN studio_numbers AS own ON own.number = studio_number
          WHERE own.studio_id = audit_events.studio_id AND leads.id = unhex(lead_id, '-')) AS is_of_no_lead,
        api_key_id IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM api_keys WHERE api_keys.studio_id = audit_events.studio_id AND id = api_key_id) AS is_of_no_key,
        studio_id <> '' AND NOT EXISTS (SELECT 1 FROM studios WHERE id = studio_id) AS is_of_no_studio`,
      from: 'audit_events',
      numbers: ['number'],
    },
    (row) => [
      ...unreadableBy(() => auditEventOf(row)),
      ...wrongIf(row.is_of_no_lead, FAULTS.ofNoLead, `event ${row.place}`),
      ...wrongIf(row.is_of_no_key, FAULTS.ofNoKey, `event ${row.place}`),
      ...wrongIf(row.is_of_no_studio, FAULTS.ofNoStudio, `event ${row.place}`),
    ],
  );

const requests = (database: DatabaseSync) =>
  rowsOf(database, { columns: 'studio_id, id, request', from: 'logged_requests', ...IDS }, (row) =>
    unreadableBy(() => checkedRequest(requestIn(row))),
  );
