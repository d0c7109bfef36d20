import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { Retention } from '../../domain/studio.ts';
import type { AnyField, Fields, Kind, Unchecked } from '../checked.ts';
import { API_KEY, AUDIT_EVENT, CONSUMER, DATABASE_EPOCH, LEAD_SOURCE, MEMBER, STUDIO } from '../records.ts';
import { type ListRow, number, objectIn, type Prepare, toColumn } from './rows.ts';

/** The storage of a kind of field in SQLite. */
interface ColumnKind {
  readonly type: 'TEXT' | 'INTEGER' | 'BLOB';
  /** Returns the SQL that a query selects; default: the column. */
  readonly select?: (column: string) => string;
  /** Converts a value other than null; default: unchanged. */
  readonly read?: (value: SQLOutputValue) => unknown;
  readonly write?: (value: never) => SQLInputValue;
}

const KINDS: Readonly<Record<Kind, ColumnKind>> = {
  text: { type: 'TEXT' },
  uuid: { type: 'TEXT' },
  bytes: { type: 'BLOB' },
  int: { type: 'INTEGER', select: number },
  bool: { type: 'INTEGER', select: number, read: (value) => [false, true][value as number], write: Number },
  time: {
    type: 'INTEGER',
    select: number,
    read: (ms) => new Date(ms as number),
    write: (time: Date) => time.getTime(),
  },
  words: { type: 'TEXT', read: (text) => `${text}`.split(' '), write: (words: readonly string[]) => words.join(' ') },
  json: { type: 'TEXT', read: (text) => objectIn(text as string), write: (value: unknown) => JSON.stringify(value) },
  retention: {
    type: 'TEXT',
    read(text) {
      const { days, since } = Object(objectIn(text as string));
      return { days, since: new Date(since) };
    },
    write: ({ days, since }: Retention) => JSON.stringify({ days, since: since.getTime() }),
  },
};

/** Generates the SQL of a kind of record, and converts its rows. Each parameter is named after its field. */
export function rowMapping<Record>({ table, fields }: { readonly table: string; readonly fields: Fields<Record> }) {
  type Name = keyof Record & string;
  const columns = (Object.entries(fields) as [Name, AnyField][]).map(([name, field]) => {
    const { kind, nullable, absent = null, readPart = (value: unknown) => value, column = toColumn(name) } = field;
    const { type, select = (sql: string) => sql, read = (value: SQLOutputValue) => value, write } = KINDS[kind];
    const written = (value: unknown) => (value === null || !write ? value : write(value as never)) as SQLInputValue;
    const given = written(absent);
    return {
      name,
      column,
      definition: [
        `${column} ${type}`,
        !nullable && 'NOT NULL',
        given !== null && `DEFAULT ${typeof given === 'string' ? `'${given}'` : given}`,
      ]
        .filter(Boolean)
        .join(' '),
      select: select(`${table}.${column}`),
      read: (value: SQLOutputValue | undefined) => readPart(value === null ? null : read(value as SQLOutputValue)),
      written,
    };
  });
  const selected = columns.map(({ select }) => select).join(', ');

  /** @param from the position of the first column in the row */
  function read(row: ListRow, from = 0): Unchecked<Record> {
    const record: { [name: string]: unknown } = {};
    let index = from;
    for (const column of columns) record[column.name] = column.read(row[index++]);
    return record as Unchecked<Record>;
  }
  return {
    selected,
    read,
    /** The number of selected columns. */
    width: columns.length,

    /** Prepares a query of records. @param rest the SQL after the table */
    query(prepare: Prepare, rest: string) {
      const statement = prepare(`SELECT ${selected} FROM ${table} ${rest}`);
      return {
        get(...parameters: SQLInputValue[]): Unchecked<Record> | undefined {
          const row = statement.get(...parameters);
          return row && read(row);
        },
        all: (...parameters: SQLInputValue[]) => statement.all(...parameters).map((row) => read(row)),
      };
    },

    /** Returns the columns of CREATE TABLE. @param constraints of single columns, by field */
    definitions: (constraints: { readonly [Each in Name]?: string } = {}) =>
      columns.map(({ name, definition }) => `${definition} ${constraints[name] ?? ''}`).join(', '),

    /** Returns the rest of an INSERT. @param more further columns, each with a parameter of the same name */
    into(...more: readonly string[]): string {
      const [names, values] = [columns.map(({ column }) => column), columns.map(({ name }) => name)];
      return `INTO ${table} (${[...names, ...more]}) VALUES (${[...values, ...more].map((name) => `:${name}`)})`;
    },

    /** Returns the given fields as parameters, and the SET clause of an UPDATE with them. */
    written(record: { readonly [Each in Name]?: Record[Each] | undefined }) {
      const given = columns.filter(({ name }) => record[name] !== undefined);
      const values = Object.fromEntries(given.map(({ name, written }) => [name, written(record[name])]));
      return { set: given.map(({ column, name }) => `${column} = :${name}`), values };
    },
  };
}

export const API_KEYS = rowMapping(API_KEY);
export const STUDIOS = rowMapping(STUDIO);
export const MEMBERS = rowMapping(MEMBER);
export const LEAD_SOURCES = rowMapping(LEAD_SOURCE);
export const AUDIT_EVENTS = rowMapping(AUDIT_EVENT);
export const CONSUMERS = rowMapping(CONSUMER);
export const EPOCHS = rowMapping({ table: 'database_epoch', fields: DATABASE_EPOCH });
