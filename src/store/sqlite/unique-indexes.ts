import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { describeDuplicates, MAX_GROUPS, MAX_IN_GROUP } from '../index-faults.ts';
import { idText } from './stored-ids.ts';

/** A unique index that promises rely on. */
interface UniqueIndex {
  /** The records whose uniqueness it enforces. */
  readonly guards: 'leads' | 'api_keys';
  readonly table: string;
  /** SQL expressions for the ids of the studio and of the record. */
  readonly studioId: string;
  readonly id: string;
  /** The name under which it is rebuilt. */
  readonly name: string;
  readonly columns: readonly string[];
}

const OF_API_KEYS = { guards: 'api_keys', table: 'api_keys', studioId: 'studio_id', id: 'id' } as const;
const STUDIO_ID_BY_NUMBER = '(SELECT studio_id FROM studio_numbers WHERE number = studio_number)';

/** All unique indexes except those of ids. None is partial: a lead always has an idempotency key, an API key a slot. */
const UNIQUE_INDEXES: readonly UniqueIndex[] = [
  {
    guards: 'leads',
    table: 'contact_claims',
    studioId: STUDIO_ID_BY_NUMBER,
    id: '(SELECT hex(id) FROM leads WHERE number = lead_number)',
    name: 'contact_claims_by_contact',
    columns: ['studio_number', 'contact_key'],
  },
  {
    guards: 'leads',
    table: 'leads',
    studioId: STUDIO_ID_BY_NUMBER,
    id: 'hex(id)',
    name: 'leads_by_idempotency_key',
    columns: ['studio_number', 'idempotency_key'],
  },
  { ...OF_API_KEYS, name: 'api_keys_by_secret', columns: ['secret_sha256'] },
  { ...OF_API_KEYS, name: 'api_keys_by_slot', columns: ['studio_id', 'slot'] },
];

/** A missing or invalid index. */
interface IndexFault {
  readonly index: UniqueIndex;
  /** Such as "the index api_keys_by_slot is missing". */
  readonly fault: string;
}

/** The first and the maximum delay between attempts to build an index, which may read a whole table; milliseconds. */
const MIN_REBUILD_DELAY_MS = 1000;
const MAX_REBUILD_DELAY_MS = 60_000;

/**
 * Checks the unique indexes, and rebuilds missing ones. Every change of the schema changes its version, so a check
 * costs almost nothing; within a write transaction, it holds until the end of the transaction.
 */
export class UniqueIndexes {
  readonly #database: DatabaseSync;
  readonly #schemaVersion: StatementSync;
  readonly #beforeCheck: () => void;
  /** The schema version at the last check; undefined: none is valid. */
  #checkedVersion: number | undefined;
  #faults: readonly IndexFault[] = [];
  #rebuildDelayMs = MIN_REBUILD_DELAY_MS;
  #nextRebuildAt = 0;

  /** @param beforeCheck ends a read transaction, because a check may write */
  constructor(database: DatabaseSync, beforeCheck: () => void) {
    this.#database = database;
    this.#beforeCheck = beforeCheck;
    this.#schemaVersion = database.prepare('PRAGMA schema_version');
    this.check();
  }

  /** Returns what was wrong with the indexes of these records at the last check; undefined: nothing. */
  fault(guarded: UniqueIndex['guards']): string | undefined {
    // The fault may have been corrected.
    if (this.#faults.length > 0) this.check();
    return describe(this.#faults.filter(({ index }) => index.guards === guarded));
  }

  /** The indexes that were missing or invalid at the last check. */
  get missing(): readonly UniqueIndex[] {
    return this.#faults.map(({ index }) => index);
  }

  /** Checks the indexes if the schema has changed, and rebuilds missing ones unless that has failed recently. */
  check(): void {
    this.#beforeCheck();
    const version = this.#schemaNumber();
    const isChanged = version !== this.#checkedVersion;
    if (!isChanged && (this.#faults.length === 0 || performance.now() < this.#nextRebuildAt)) return;
    this.#checkedVersion = version;
    this.#faults = faultsIn(this.#database);
    if (this.#faults.length === 0) this.#rebuildDelayMs = MIN_REBUILD_DELAY_MS;
    else this.#rebuild();
  }

  /** Discards the result of a check in a transaction that was not committed. */
  invalidate(): void {
    this.#checkedVersion = undefined;
  }

  #schemaNumber(): number {
    return this.#schemaVersion.get()?.schema_version as number;
  }

  #rebuild(): void {
    const database = this.#database;
    const began = database.isTransaction;
    try {
      if (!began) database.exec('BEGIN IMMEDIATE');
      this.#faults = faultsIn(database).flatMap((fault) => build(database, fault) ?? []);
      if (!began) database.exec('COMMIT');
    } catch (error) {
      if (began) throw error;
      // The database is locked, or the disk is full.
      if (database.isTransaction) database.exec('ROLLBACK');
      this.#faults = faultsIn(database);
    }
    // A rebuilt index counts once the transaction is committed.
    this.invalidate();
    if (this.#faults.length === 0) return;
    this.#checkedVersion = this.#schemaNumber();
    this.#nextRebuildAt = performance.now() + this.#rebuildDelayMs;
    this.#rebuildDelayMs = Math.min(this.#rebuildDelayMs * 2, MAX_REBUILD_DELAY_MS);
  }
}

/** Joins faults to sentences; undefined: there are none. */
function describe(faults: readonly IndexFault[]): string | undefined {
  return faults.length === 0 ? undefined : faults.map(({ fault }) => fault).join('. ');
}

/** Returns one text for each missing or invalid index, with the rows that conflict with it. */
export function faultsWithDuplicates(database: DatabaseSync): readonly string[] {
  return faultsIn(database).map(({ index, fault }) => {
    const duplicates = describeDuplicates(duplicatesUnder(database, index));
    return duplicates === undefined ? fault : `${fault}; ${duplicates}`;
  });
}

/** Returns the missing or invalid indexes. The name of an index does not matter, only its columns and options. */
function faultsIn(database: DatabaseSync): readonly IndexFault[] {
  return UNIQUE_INDEXES.flatMap((index) => {
    const found = database.prepare('SELECT * FROM pragma_index_list(?)').all(index.table);
    const withSameColumns = found.filter(({ name }) => columnsOf(database, String(name)) === index.columns.join());
    const isValid = withSameColumns.some(({ unique, partial }) => unique === 1 && partial === 0);
    if (isValid) return [];
    const candidate = withSameColumns[0] ?? found.find(({ name }) => name === index.name);
    const weakness =
      candidate &&
      (candidate.unique === 0 ? 'is not unique' : candidate.partial === 1 ? 'is partial' : 'has other columns');
    const fault = candidate
      ? `the index ${index.name} is invalid: "${candidate.name}" ${weakness}`
      : `the index ${index.name} is missing`;
    return [{ index, fault }];
  });
}

/** The columns of an index in order; empty if it has an expression or a collation other than BINARY. */
function columnsOf(database: DatabaseSync, index: string): string {
  const columns = database.prepare('SELECT * FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno').all(index);
  return columns.some(({ name, coll }) => name === null || coll !== 'BINARY')
    ? ''
    : columns.map(({ name }) => name).join();
}

/** Builds an index; returns the fault that remains, if any. */
function build(database: DatabaseSync, { index, fault }: IndexFault): IndexFault | undefined {
  const { table, name, columns } = index;
  database.exec('SAVEPOINT one_index');
  try {
    database.exec(`CREATE UNIQUE INDEX ${name} ON ${table} (${columns.join()}); RELEASE one_index`);
    return undefined;
  } catch (error) {
    if (!database.isTransaction) throw error;
    database.exec('ROLLBACK TO one_index; RELEASE one_index');
    const reason = describeDuplicates(duplicatesUnder(database, index)) ?? (error as Error).message;
    return { index, fault: `${fault}, and cannot be built: ${reason}` };
  }
}

/** Finds groups of rows that violate a unique index. Returns only their ids, oldest first. */
function duplicatesUnder(database: DatabaseSync, { table, studioId, id, columns }: UniqueIndex): string[][] {
  const groups = database
    .prepare(
      `SELECT ${columns.join()} FROM ${table} GROUP BY ${columns.join()} HAVING count(*) > 1 LIMIT ${MAX_GROUPS}`,
    )
    .all();
  const same = columns.map((column) => `${column} IS :${column}`).join(' AND ');
  const select = database.prepare(
    `SELECT ${studioId} AS studioId, ${id} AS id FROM ${table} WHERE ${same} ORDER BY ${id} LIMIT ${MAX_IN_GROUP}`,
  );
  const nameOf = (row: Record<string, unknown>) => `${row.studioId}/${idText(String(row.id))}`;
  return groups.map((group) => select.all(group).map(nameOf));
}
