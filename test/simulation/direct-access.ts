import { type Document, MongoClient, UUID } from 'mongodb';
import { leadKey } from '../../src/store/mongo/documents.ts';
import { ID_BYTES, isBytes, STUDIO_NUMBER, setColumn } from '../support/raw-sqlite.ts';
import { runSql } from './run-sql.ts';

/** The address of a record in the database. */
export interface StoredRecord {
  readonly kind: 'lead' | 'key' | 'studio' | 'member' | 'source';
  readonly studioId: string;
  readonly id: string;
}

/** Direct access to the database, bypassing the service. Each method is idempotent, and throws when the database is unavailable. */
export interface DirectAccess {
  readonly database: 'SQLite' | 'MongoDB';
  /** Returns the value of a field, by its database name. */
  read(record: StoredRecord, field: string): Promise<unknown>;
  /** Writes any value into a field; undefined removes the field where the database allows that. */
  write(record: StoredRecord, field: string, value: unknown): Promise<void>;
  /** Drops the unique index of idempotency keys; may replace it by one that does not enforce uniqueness for all leads. */
  weakenKeyIndex(how: 'gone' | 'partial' | 'not unique'): Promise<void>;
  /** Removes the replacement of the unique index. */
  removeWeakKeyIndex(): Promise<void>;
  /** Deletes all leads of a studio. */
  deleteLeadsOf(studioId: string): Promise<void>;
}

/** The timeout of each access; milliseconds. */
const ENDS_WITHIN_MS = 10_000;

const SQLITE_KEY_INDEX = 'leads_by_idempotency_key';
const MONGO_KEY_INDEX = { name: 'idempotencyKey', key: { studioId: 1, 'idempotency.key': 1 } } as const;

/** The table and the condition for each kind of record; the parameters are the ids of the studio and of the record. */
const TABLES = {
  lead: ['leads', `studio_number = ${STUDIO_NUMBER} AND id = ${ID_BYTES}`],
  key: ['api_keys', 'studio_id = ? AND id = ?'],
  studio: ['studios', 'id = ? AND id = ?'],
  member: ['members', 'studio_id = ? AND id = ?'],
  source: ['lead_sources', 'studio_id = ? AND id = ?'],
} as const;

/** The JSON representation of a value of type BLOB. */
interface Bytes {
  readonly hex: string;
}

/** Runs a separate program on the machine that has the file. */
export class SqliteAccess implements DirectAccess {
  readonly database = 'SQLite';
  readonly #databaseUrl: string;

  constructor(databaseUrl: string) {
    this.#databaseUrl = databaseUrl;
  }

  async read({ kind, studioId, id }: StoredRecord, field: string): Promise<unknown> {
    const [table, condition] = TABLES[kind];
    const column = isBytes(field) ? `iif(${field} IS NULL, NULL, hex(${field}))` : field;
    const select = `SELECT ${column} AS value FROM ${table} WHERE ${condition}`;
    const [[row]] = (await runSql(this.#databaseUrl, [select, studioId, id])) as [[{ value: unknown } | undefined]];
    if (!row) throw new Error(`there is no ${kind} ${id}`);
    return isBytes(field) && row.value !== null ? { hex: row.value } : row.value;
  }

  async write({ kind, studioId, id }: StoredRecord, field: string, value: unknown): Promise<void> {
    const [table, condition] = TABLES[kind];
    const { hex } = Object(value) as Partial<Bytes>;
    const change = hex === undefined ? setColumn(field) : `${field} = unhex(?)`;
    await runSql(this.#databaseUrl, [`UPDATE ${table} SET ${change} WHERE ${condition}`, hex ?? value, studioId, id]);
  }

  async weakenKeyIndex(how: 'gone' | 'partial' | 'not unique'): Promise<void> {
    const on = `${SQLITE_KEY_INDEX} ON leads (studio_number, idempotency_key)`;
    const weaker = {
      gone: [],
      partial: [`CREATE UNIQUE INDEX ${on} WHERE stage = 'lost'`],
      'not unique': [`CREATE INDEX ${on}`],
    };
    await runSql(this.#databaseUrl, [`DROP INDEX IF EXISTS ${SQLITE_KEY_INDEX}`], ...weaker[how].map((sql) => [sql]));
  }

  async removeWeakKeyIndex(): Promise<void> {
    await runSql(this.#databaseUrl, [`DROP INDEX IF EXISTS ${SQLITE_KEY_INDEX}`]);
  }

  async deleteLeadsOf(studioId: string): Promise<void> {
    const tables = ['contact_claims', 'leads'];
    await runSql(
      this.#databaseUrl,
      ...tables.map((table) => [`DELETE FROM ${table} WHERE studio_number = ${STUDIO_NUMBER}`, studioId]),
    );
  }
}

const COLLECTIONS = { lead: 'leads', key: 'apiKeys', studio: 'studios', member: 'studios', source: 'studios' } as const;

/** Uses the MongoDB driver, through the same proxy as the cores. */
export class MongoAccess implements DirectAccess {
  readonly database = 'MongoDB';
  readonly #url: string;

  /** @param url a URL whose write concern acknowledges writes */
  constructor(url: string) {
    this.#url = url;
  }

  async read(record: StoredRecord, field: string): Promise<unknown> {
    const { collection, _id } = placeOf(record);
    const found = await this.withClient((client) => client.db().collection<Document>(collection).findOne({ _id }));
    if (!found) throw new Error(`there is no ${record.kind} ${record.id}`);
    return pathTo(record, field)
      .split('.')
      .reduce((value: unknown, name) => Object(value)[name], found);
  }

  async write(record: StoredRecord, field: string, value: unknown): Promise<void> {
    const { collection, _id } = placeOf(record);
    const path = pathTo(record, field);
    const change = value === undefined ? { $unset: { [path]: 1 } } : { $set: { [path]: value } };
    await this.withClient((client) => client.db().collection<Document>(collection).updateOne({ _id }, change));
  }

  async weakenKeyIndex(how: 'gone' | 'partial' | 'not unique'): Promise<void> {
    await this.withClient(async (client) => {
      const leads = client.db().collection<Document>('leads');
      const drop = () => leads.dropIndex(MONGO_KEY_INDEX.name).catch(() => {});
      await drop();
      if (how === 'gone') return;
      const weak = how === 'partial' ? { unique: true, partialFilterExpression: { stage: 'lost' } } : {};
      const { key, name } = MONGO_KEY_INDEX;
      // A core may recreate the correct index first.
      while (
        !(await leads.createIndex(key, { name, ...weak }).then(
          () => isWeak(client),
          () => false,
        ))
      )
        await drop();
    });
  }

  async removeWeakKeyIndex(): Promise<void> {
    await this.withClient(async (client) => {
      const { name } = MONGO_KEY_INDEX;
      if (await isWeak(client)) await client.db().collection('leads').dropIndex(name);
    });
  }

  async deleteLeadsOf(studioId: string): Promise<void> {
    await this.withClient((client) => client.db().collection('leads').deleteMany({ studioId }));
  }

  async withClient<T>(act: (client: MongoClient) => Promise<T>): Promise<T> {
    const client = new MongoClient(this.#url, {
      serverSelectionTimeoutMS: ENDS_WITHIN_MS / 2,
      socketTimeoutMS: ENDS_WITHIN_MS / 2,
    });
    return act(client).finally(() => client.close());
  }
}

/** Returns whether another index replaces the unique index of idempotency keys. */
async function isWeak(client: MongoClient): Promise<boolean> {
  const indexes = await client.db().collection('leads').indexes();
  const found = indexes.find(({ name }) => name === MONGO_KEY_INDEX.name);
  return found !== undefined && (!found.unique || found.partialFilterExpression !== undefined);
}

function placeOf({ kind, studioId, id }: StoredRecord): { readonly collection: string; readonly _id: Document } {
  const own: unknown = kind === 'lead' ? leadKey(studioId, id) : kind === 'key' ? new UUID(id) : studioId;
  return { collection: COLLECTIONS[kind], _id: own as Document };
}

/** Returns the path of a field: members and sources are embedded in the studio's document. */
function pathTo({ kind, id }: StoredRecord, field: string): string {
  if (kind === 'member') return `members.${id}`;
  return kind === 'source' ? `sources.${id}.${field}` : field;
}
