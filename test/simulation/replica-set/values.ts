import type { BSON, Document } from 'mongodb';

/* Values of documents, compared as MongoDB does. Numbers are objects of the driver, so they keep their types. */

/** The product or a test has used a feature that is not simulated. */
export class NotSimulated extends Error {
  constructor(what: string) {
    super(`the simulated replica set does not support ${what}`);
  }
}

/** The server refuses a command, or a statement of one. */
export class Refusal extends Error {
  readonly code: number;
  readonly codeName: string;
  readonly details: Document;

  constructor(code: number, codeName: string, message: string, details: Document = {}) {
    super(message);
    this.code = code;
    this.codeName = codeName;
    this.details = details;
  }
}

/** The kinds of values, in sorting order. */
const KINDS = [
  'null',
  'number',
  'string',
  'object',
  'array',
  'bytes',
  'id',
  'boolean',
  'date',
  'time',
  'regex',
] as const;
type Kind = (typeof KINDS)[number];

const BSON_KINDS: Readonly<Record<string, Kind>> = {
  ...{ Int32: 'number', Double: 'number', Long: 'number', Binary: 'bytes', ObjectId: 'id', Timestamp: 'time' },
};

export function findKind(value: unknown): Kind {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return typeof value as Kind;
  if (Array.isArray(value)) return 'array';
  if (value instanceof Date) return 'date';
  if (value instanceof RegExp) return 'regex';
  const { _bsontype: type } = value as { readonly _bsontype?: string };
  const kind = type === undefined ? 'object' : BSON_KINDS[type];
  if (!kind) throw new NotSimulated(`a value of type ${type}`);
  return kind;
}

export const isObject = (value: unknown): value is Document => findKind(value) === 'object';

const toBytes = (value: BSON.Binary): Uint8Array => value.buffer.subarray(0, value.position);

/** Returns a text that is equal for values that MongoDB considers equal, and for no others. */
export function toText(value: unknown): string {
  const kind = findKind(value);
  switch (kind) {
    case 'null':
      return 'null';
    case 'array':
      return `[${(value as unknown[]).map(toText).join()}]`;
    case 'object':
      return `{${Object.entries(value as Document)
        .map(([name, each]) => `${JSON.stringify(name)}:${toText(each)}`)
        .join()}}`;
    case 'bytes':
      return `x${(value as BSON.Binary).sub_type}:${Buffer.from(toBytes(value as BSON.Binary)).toString('base64')}`;
    case 'date':
      return `d${(value as Date).getTime()}`;
    case 'string':
      return JSON.stringify(value);
    default:
      return `${kind} ${value}`;
  }
}

export function areEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  const kind = findKind(a);
  if (kind !== findKind(b)) return false;
  // Fast paths: most comparisons are of ids, and of lists of them.
  if (kind === 'bytes' || kind === 'string') return compare(a, b) === 0;
  if (kind === 'array' && (a as unknown[]).length !== (b as unknown[]).length) return false;
  return toText(a) === toText(b);
}

/** Returns a negative number when `a` is sorted before `b`. */
export function compare(a: unknown, b: unknown): number {
  const kind = findKind(a);
  const byKind = KINDS.indexOf(kind) - KINDS.indexOf(findKind(b));
  if (byKind !== 0) return byKind;
  switch (kind) {
    case 'null':
      return 0;
    case 'string':
      return a === b ? 0 : Buffer.compare(Buffer.from(a as string), Buffer.from(b as string));
    case 'date':
      return (a as Date).getTime() - (b as Date).getTime();
    case 'bytes': {
      const [one, other] = [a as BSON.Binary, b as BSON.Binary];
      return (
        one.position - other.position || one.sub_type - other.sub_type || Buffer.compare(toBytes(one), toBytes(other))
      );
    }
    case 'array':
    case 'object':
      return compareEntries(Object.entries(a as Document), Object.entries(b as Document), kind === 'object');
    case 'id':
      return Buffer.compare((a as BSON.ObjectId).id, (b as BSON.ObjectId).id);
    default:
      return Number(a) - Number(b);
  }
}

function compareEntries(a: [string, unknown][], b: [string, unknown][], areNamed: boolean): number {
  for (const [index, [name, value]] of a.entries()) {
    const other = b[index];
    if (!other) return 1;
    const byKind = KINDS.indexOf(findKind(value)) - KINDS.indexOf(findKind(other[1]));
    const byName = areNamed ? compare(name, other[0]) : 0;
    const order = byKind || byName || compare(value, other[1]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Returns the value of an own property: every object inherits names such as `constructor`. */
export const findField = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

/** Returns a copy of a document with another value of a field; undefined removes it. */
export function withField(document: Document, name: string, value: unknown): Document {
  const { [name]: _, ...others } = document;
  if (value === undefined) return others;
  const changed = Object.hasOwn(document, name) ? { ...document } : others;
  return Object.defineProperty(changed, name, { value, enumerable: true, configurable: true, writable: true });
}

/**
 * Returns the values at a path, through the objects of every array along it; undefined for a missing field. A value may
 * itself be an array.
 */
export function valuesAt(value: unknown, path: readonly string[], from = 0): unknown[] {
  const name = path[from];
  if (name === undefined) return [value];
  if (Array.isArray(value)) {
    const at = /^\d+$/.test(name) && Number(name) < value.length ? valuesAt(value[Number(name)], path, from + 1) : [];
    return [...at, ...value.filter(isObject).flatMap((each) => valuesAt(each, path, from))];
  }
  const next = findField(value, name);
  if (next === undefined || from === path.length - 1) return [next];
  return valuesAt(next, path, from + 1);
}
