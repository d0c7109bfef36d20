import { BSON, type Document, Long } from 'mongodb';
import { type Change, Collection, type Data, ID_INDEX, type IndexSpec } from './data.ts';
import { aggregated, projected } from './queries.ts';
import { compileUpdate, MAX_DOCUMENT_BYTES, makeSeed } from './updates.ts';
import { NotSimulated, Refusal, toText } from './values.ts';

/* The commands that the product and tests send. */

/** A statement of a retryable write, and its reply. */
export interface Statement {
  /** The session and the number of its transaction. */
  readonly transaction: string;
  readonly id: number;
  readonly result: StatementResult;
}

interface StatementResult {
  readonly n: number;
  readonly nModified?: number;
  readonly upserted?: unknown;
}

/** The parts of the primary that a command uses. */
export interface Primary {
  readonly data: Data;
  /** The documents that each cursor has left, by its number. */
  readonly cursors: Map<string, Document[]>;
  /** Returns the number of the entry up to which a command reads. */
  readAt(command: Document): number;
  /** Adds an entry to the log, and applies it. */
  append(change: Change, statement?: Statement): void;
  /** Returns the reply of a statement that was executed. */
  findResult(transaction: string, id: number): StatementResult | undefined;
  /** Lets other commands run. @throws Refusal when the member is no longer primary */
  yield(): Promise<void>;
}

const LATEST = Number.POSITIVE_INFINITY;

/** The number of documents in the first part of a result. */
const FIRST_BATCH = 101;

const toNamespace = (command: Document): string => `${command.$db}.${Object.values(command)[0]}`;

const findCollection = ({ data }: Primary, namespace: string): Collection =>
  data.collections.get(namespace) ?? new Collection();

function expectCollection({ data }: Primary, namespace: string): Collection {
  const collection = data.collections.get(namespace);
  if (!collection) throw new Refusal(26, 'NamespaceNotFound', `ns does not exist: ${namespace}`);
  return collection;
}

interface CommandKind {
  readonly writes?: boolean;
  /** Whether every member answers it, primary or not. */
  readonly isOfServer?: boolean;
  readonly fields: readonly string[];
  run(primary: Primary, command: Document, namespace: string): Document | Promise<Document>;
}

/** Fields that any command may have. They are handled elsewhere, or change no result. */
const GENERAL = [
  ...['$db', 'lsid', '$clusterTime', '$readPreference', 'txnNumber', 'maxTimeMS', 'readConcern', 'writeConcern'],
  ...['comment', 'allowDiskUse', 'cursor'],
];

export const COMMANDS: Readonly<Record<string, CommandKind>> = {
  ping: { isOfServer: true, fields: [], run: () => ({}) },
  endSessions: { isOfServer: true, fields: [], run: () => ({}) },
  buildInfo: { isOfServer: true, fields: [], run: () => ({ version: '8.0.0' }) },

  find: {
    // `singleBatch` changes nothing, because its limit always fits into a batch.
    fields: ['filter', 'sort', 'projection', 'skip', 'limit', 'batchSize', 'singleBatch'],
    run(primary, command, namespace) {
      const { filter = {}, sort, projection, skip, limit, batchSize } = command;
      const amount = { sort, skip: Number(skip ?? 0), limit: Number(limit ?? 0) };
      const found = findCollection(primary, namespace).find(primary.readAt(command), filter, amount);
      return replyWith(
        primary,
        namespace,
        found.map((document) => projected(document, projection)),
        batchSize,
      );
    },
  },

  aggregate: {
    fields: ['pipeline'],
    run(primary, command, namespace) {
      const [{ $match = {} } = {}] = command.pipeline;
      const found = findCollection(primary, namespace).find(primary.readAt(command), $match);
      return replyWith(primary, namespace, aggregated(found, command.pipeline), command.cursor?.batchSize);
    },
  },

  getMore: {
    fields: ['collection', 'batchSize'],
    run(primary, { getMore, collection, $db, batchSize }) {
      const rest = primary.cursors.get(`${getMore}`);
      if (!rest) throw new Refusal(43, 'CursorNotFound', `cursor id ${getMore} not found`);
      primary.cursors.delete(`${getMore}`);
      return replyWith(primary, `${$db}.${collection}`, rest, batchSize ?? LATEST, getMore);
    },
  },

  killCursors: {
    fields: ['cursors'],
    run(primary, { cursors }) {
      for (const cursor of cursors) primary.cursors.delete(`${cursor}`);
      return { cursorsKilled: cursors };
    },
  },

  insert: {
    writes: true,
    fields: ['documents', 'ordered', 'stmtIds', 'stmtId', 'bypassEmptyTsReplacement'],
    run: (primary, command, namespace) =>
      eachStatement(primary, command, command.documents, (document) => {
        const collection = findCollection(primary, namespace);
        if (BSON.calculateObjectSize(document) > MAX_DOCUMENT_BYTES)
          throw new Refusal(10334, 'BSONObjectTooLarge', 'object to insert too large');
        return { changes: [insertion(collection, namespace, document)], result: { n: 1 } };
      }),
  },

  update: {
    writes: true,
    fields: ['updates', 'ordered', 'stmtIds', 'stmtId', 'bypassDocumentValidation'],
    run: (primary, command, namespace) =>
      eachStatement(primary, command, command.updates, ({ q, u, multi = false, upsert = false, ...others }) => {
        const [unknown] = Object.keys(others);
        if (unknown) throw new NotSimulated(`the field ${unknown} of an update`);
        const { $setOnInsert, ...update } = u;
        const change = compileUpdate(update);
        const collection = findCollection(primary, namespace);
        const found = collection.find(LATEST, q, { limit: multi ? 0 : 1 });
        if (found.length === 0 && upsert) {
          const document = change({ ...makeSeed(q), ...$setOnInsert });
          const changes = [insertion(collection, namespace, document)];
          return { changes, result: { n: 1, nModified: 0, upserted: document._id } };
        }
        const changes = found.flatMap((before): Change[] => {
          const document = change(before);
          if (document === before) return [];
          collection.expectUnique(namespace, document);
          return [{ kind: 'document', namespace, id: toText(document._id), document }];
        });
        return { changes, result: { n: found.length, nModified: changes.length } };
      }),
  },

  delete: {
    writes: true,
    fields: ['deletes', 'ordered', 'stmtIds', 'stmtId'],
    run: (primary, command, namespace) =>
      eachStatement(primary, command, command.deletes, ({ q, limit }) => {
        const found = findCollection(primary, namespace).find(LATEST, q, { limit: Number(limit) });
        const changes = found.map(
          ({ _id }): Change => ({ kind: 'document', namespace, id: toText(_id), document: undefined }),
        );
        return { changes, result: { n: found.length } };
      }),
  },

  listIndexes: {
    fields: ['includeBuildUUIDs'],
    run(primary, _, namespace) {
      const collection = expectCollection(primary, namespace);
      const ready = [ID_INDEX, ...collection.indexes.values()].map((spec) => ({ v: 2, ...spec }));
      return replyWith(primary, namespace, ready);
    },
  },

  createIndexes: {
    writes: true,
    fields: ['indexes', 'commitQuorum'],
    run(primary, { indexes }, namespace) {
      for (const spec of indexes) createIndex(primary, namespace, spec);
      return {};
    },
  },

  dropDatabase: {
    writes: true,
    fields: [],
    run(primary, { $db }) {
      const namespaces = [...primary.data.collections.keys()].filter((name) => name.startsWith(`${$db}.`));
      for (const namespace of namespaces) primary.append({ kind: 'no collection', namespace });
      return {};
    },
  },
};

/** @throws NotSimulated if the command or one of its fields is not supported */
export function commandKind(command: Document): CommandKind {
  const [name = '', ...fields] = Object.keys(command);
  const kind = COMMANDS[name];
  if (!kind) throw new NotSimulated(`the command ${name}`);
  const unknown = fields.find((field) => !kind.fields.includes(field) && !GENERAL.includes(field));
  if (unknown) throw new NotSimulated(`the field ${unknown} of the command ${name}`);
  return kind;
}

export const run = async (primary: Primary, command: Document): Promise<Document> =>
  commandKind(command).run(primary, command, toNamespace(command));

/** Returns a reply with as many documents as fit into it; a cursor keeps the rest. */
function replyWith(
  { cursors }: Primary,
  ns: string,
  documents: readonly Document[],
  batchSize: unknown = FIRST_BATCH,
  known?: Long,
): Document {
  let bytes = 0;
  const end = documents.findIndex((document, index) => {
    bytes += BSON.calculateObjectSize(document);
    return index >= Number(batchSize) || (index > 0 && bytes > MAX_DOCUMENT_BYTES);
  });
  const batch = documents.slice(0, end < 0 ? documents.length : end);
  const rest = documents.slice(batch.length);
  const id = rest.length === 0 ? Long.ZERO : (known ?? Long.fromNumber(1 + Math.floor(Math.random() * 2 ** 48)));
  if (rest.length > 0) cursors.set(`${id}`, rest);
  return { cursor: { id, ns, [known ? 'nextBatch' : 'firstBatch']: batch } };
}

/** @throws Refusal if another document has the same value in a unique index */
function insertion(collection: Collection, namespace: string, document: Document): Change {
  const id = toText(document._id);
  if (collection.get(id, LATEST)) {
    const details = { keyPattern: ID_INDEX.key, keyValue: { _id: document._id } };
    throw new Refusal(
      11000,
      'DuplicateKey',
      `E11000 duplicate key error collection: ${namespace} index: _id_`,
      details,
    );
  }
  collection.expectUnique(namespace, document);
  return { kind: 'document', namespace, id, document };
}

/** Executes the statements of a write one after another. A retried one is not executed again, and gets its first reply. */
async function eachStatement(
  primary: Primary,
  { lsid, txnNumber, stmtIds, stmtId = 0, ordered, update }: Document,
  statements: readonly Document[],
  execute: (statement: Document) => { readonly changes: readonly Change[]; readonly result: StatementResult },
): Promise<Document> {
  const transaction = txnNumber === undefined ? undefined : `${toText(lsid.id)} ${txnNumber}`;
  const results: StatementResult[] = [];
  const upserted: Document[] = [];
  const writeErrors: Document[] = [];
  for (const [index, statement] of statements.entries()) {
    await primary.yield();
    const id = Number(stmtIds?.[index] ?? Number(stmtId) + index);
    try {
      let result = transaction === undefined ? undefined : primary.findResult(transaction, id);
      if (!result) {
        const executed = execute(statement);
        result = executed.result;
        const record = transaction === undefined ? undefined : { transaction, id, result };
        for (const change of executed.changes) primary.append(change, record);
      }
      results.push(result);
      if (result.upserted !== undefined) upserted.push({ index, _id: result.upserted });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      writeErrors.push({ index, code: error.code, errmsg: error.message, ...error.details });
      if (ordered !== false) break;
    }
  }
  return {
    n: results.reduce((sum, { n }) => sum + n, 0),
    ...(update !== undefined && { nModified: results.reduce((sum, { nModified = 0 }) => sum + nModified, 0) }),
    ...(upserted.length > 0 && { upserted }),
    ...(writeErrors.length > 0 && { writeErrors }),
  };
}

/** Returns a text that is equal for indexes that differ at most in name. */
const toSignature = ({ name: _, v, background, ...signature }: IndexSpec & { v?: unknown; background?: unknown }) =>
  toText({ unique: false, ...signature });

function createIndex(primary: Primary, namespace: string, spec: IndexSpec): void {
  const collection = primary.data.collections.get(namespace);
  const indexes = [...(collection?.indexes.values() ?? [])];
  const namesake = indexes.find(({ name }) => name === spec.name);
  if (namesake && toSignature(namesake) === toSignature(spec)) return;
  if (indexes.some((each) => each === namesake || toSignature(each) === toSignature(spec)))
    throw new NotSimulated('two indexes of one name or one key');
  if (collection && collection.all(LATEST).length > 0) throw new NotSimulated('an index of stored documents');
  primary.append({ kind: 'index', namespace, spec });
}
