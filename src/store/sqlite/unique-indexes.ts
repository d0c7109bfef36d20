import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { describeDuplicates, MAX_GROUPS, MAX_IN_GROUP } from '../index-faults.ts';
import { idText } from './stored-ids.ts';

/** A unique index that promises rest on. */
interface UniqueIndex {
  /** What it is there for. */
  readonly guards: 'leads' | 'api_keys';
  readonly table: string;
  /** What has the ids of the studio and of what is guarded, to a row of the table. */
  readonly studioId: string;
  readonly id: string;
  /** What it is called when it has to be made again. */
  readonly name: string;
  readonly columns: readonly string[];
}

const OF_API_KEYS = { guards: 'api_keys', table: 'api_keys', studioId: 'studio_id', id: 'id' } as const;
const STUDIO_ID_BY_NUMBER = '(SELECT studio_id FROM studio_numbers WHERE number = studio_number)';

/** Every unique index but those of ids. None is partial: a lead always has a key and a key a slot. */
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

/** An index that is not there, or not as it has to be. */
interface IndexFault {
  readonly index: UniqueIndex;
  /** What is wrong, such as "the index leads_by_slot is missing". */
  readonly says: string;
}

/** The first and the longest pause between two attempts to make an index, each of which may read a whole table; milliseconds. */
const REBUILD_DELAY_MS = 1000;
const MAX_REBUILD_DELAY_MS = 60_000;

/**
 * Knows whether the unique indexes stand that every promise rests on, and makes those that are missing. Whoever changes the
 * schema changes its number, so a look costs next to nothing; and one inside a transaction that writes holds until its end.
 */
export class UniqueIndexes {
  readonly #database: DatabaseSync;
  readonly #schemaVersion: StatementSync;
  readonly #beforeLook: () => void;
  /** The schema's number at the last look; undefined: there was none that counts. */
  #seen: number | undefined;
  #faults: readonly IndexFault[] = [];
  #pauseMs = REBUILD_DELAY_MS;
  #makeAgainAt = 0;

  /** @param beforeLook ends a transaction that only reads: a look may write */
  constructor(database: DatabaseSync, beforeLook: () => void) {
    this.#database = database;
    this.#beforeLook = beforeLook;
    this.#schemaVersion = database.prepare('PRAGMA schema_version');
    this.look();
  }

  /** What is wrong with the indexes that guard something; undefined: nothing was at the last look. */
  fault(guarded: UniqueIndex['guards']): string | undefined {
    // What is wrong may have been put right by now.
    if (this.#faults.length > 0) this.look();
    return saysOf(this.#faults.filter(({ index }) => index.guards === guarded));
  }

  /** The indexes that were not there, or not as they have to be, at the last look. */
  get missing(): readonly UniqueIndex[] {
    return this.#faults.map(({ index }) => index);
  }

  /** Looks at what may have changed, and makes what is missing unless that has just failed. */
  look(): void {
    this.#beforeLook();
    const version = this.#schemaNumber();
    const isNew = version !== this.#seen;
    if (!isNew && (this.#faults.length === 0 || performance.now() < this.#makeAgainAt)) return;
    this.#seen = version;
    this.#faults = faultsIn(this.#database);
    if (this.#faults.length === 0) this.#pauseMs = REBUILD_DELAY_MS;
    else this.#make();
  }

  /** What was made or seen in a transaction that was not committed may not be there. */
  forget(): void {
    this.#seen = undefined;
  }

  #schemaNumber(): number {
    return this.#schemaVersion.get()?.schema_version as number;
  }

  #make(): void {
    const database = this.#database;
    const began = database.isTransaction;
    try {
      if (!began) database.exec('BEGIN IMMEDIATE');
      this.#faults = faultsIn(database).flatMap((fault) => remake(database, fault) ?? []);
      if (!began) database.exec('COMMIT');
    } catch (error) {
      if (began) throw error;
      // Another process writes, or the disk is full: what was made is not there.
      if (database.isTransaction) database.exec('ROLLBACK');
      this.#faults = faultsIn(database);
    }
    // What was made counts once it is durable.
    this.forget();
    if (this.#faults.length === 0) return;
    this.#seen = this.#schemaNumber();
    this.#makeAgainAt = performance.now() + this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_REBUILD_DELAY_MS);
  }
}

/** What is wrong with the indexes, in sentences; undefined when nothing is. */
function saysOf(faults: readonly IndexFault[]): string | undefined {
  return faults.length === 0 ? undefined : faults.map(({ says }) => says).join('. ');
}

/** The indexes that are not there or not as they have to be, and the rows that stand in their way. */
export function faultsWithDuplicates(database: DatabaseSync): readonly string[] {
  return faultsIn(database).map(({ index, says }) => {
    const duplicates = describeDuplicates(duplicatesUnder(database, index));
    return duplicates === undefined ? says : `${says}; ${duplicates}`;
  });
}

/** An index does its work under any name: its columns and what it leaves out decide. */
function faultsIn(database: DatabaseSync): readonly IndexFault[] {
  return UNIQUE_INDEXES.flatMap((index) => {
    const there = database.prepare('SELECT * FROM pragma_index_list(?)').all(index.table);
    const withItsColumns = there.filter(({ name }) => columnsOf(database, String(name)) === index.columns.join());
    const isStanding = withItsColumns.some(({ unique, partial }) => unique === 1 && partial === 0);
    if (isStanding) return [];
    const namesake = withItsColumns[0] ?? there.find(({ name }) => name === index.name);
    const weakness =
      namesake &&
      (namesake.unique === 0 ? 'is not unique' : namesake.partial === 1 ? 'is partial' : 'has other columns');
    const says = namesake
      ? `the index ${index.name} is not there as it must be: "${namesake.name}" ${weakness}`
      : `the index ${index.name} is missing`;
    return [{ index, says }];
  });
}

/** An index's columns in their order; one with an expression, or that takes different texts for the same, has none. */
function columnsOf(database: DatabaseSync, index: string): string {
  const columns = database.prepare('SELECT * FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno').all(index);
  return columns.some(({ name, coll }) => name === null || coll !== 'BINARY')
    ? ''
    : columns.map(({ name }) => name).join();
}

/** Makes an index; gives what is wrong when it cannot be made. */
function remake(database: DatabaseSync, { index, says }: IndexFault): IndexFault | undefined {
  const { table, name, columns } = index;
  database.exec('SAVEPOINT one_index');
  try {
    database.exec(`CREATE UNIQUE INDEX ${name} ON ${table} (${columns.join()}); RELEASE one_index`);
    return undefined;
  } catch (error) {
    if (!database.isTransaction) throw error;
    database.exec('ROLLBACK TO one_index; RELEASE one_index');
    const hindrance = describeDuplicates(duplicatesUnder(database, index)) ?? (error as Error).message;
    return { index, says: `${says}, and cannot be made: ${hindrance}` };
  }
}

/** Rows of which a unique index allows one alone: the ids of each group, oldest first, and nothing else of them. */
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
