import type { Document } from 'mongodb';
import { compileMatcher, isCondition, sorted } from './queries.ts';
import { Refusal, toText, valuesAt } from './values.ts';

/* The data of a member of the replica set, as of each entry of its log. */

/** An index, as given to `createIndexes`. */
export interface IndexSpec {
  readonly name: string;
  readonly key: Readonly<Record<string, number>>;
  readonly unique?: boolean;
}

/** The change that an entry of the log makes. */
export type Change =
  /** Writes a document; undefined deletes it. */
  | {
      readonly kind: 'document';
      readonly namespace: string;
      readonly id: string;
      readonly document: Document | undefined;
    }
  | { readonly kind: 'index'; readonly namespace: string; readonly spec: IndexSpec }
  | { readonly kind: 'no collection'; readonly namespace: string };

/** A document as of an entry of the log. */
interface Version {
  readonly at: number;
  readonly document: Document | undefined;
}

/** Finds the ids of documents of which any version has a text. */
class Lookup {
  readonly #ids = new Map<string, Set<string>>();
  readonly toTexts: (document: Document) => readonly string[];

  constructor(toTexts: (document: Document) => readonly string[]) {
    this.toTexts = toTexts;
  }

  add(id: string, document: Document): void {
    for (const text of this.toTexts(document)) {
      const ids = this.#ids.get(text);
      if (ids) ids.add(id);
      else this.#ids.set(text, new Set([id]));
    }
  }

  find(text: string): Iterable<string> {
    return this.#ids.get(text) ?? [];
  }
}

const splitPath = (field: string): string[] => field.split('.');

/** Returns the indexed values of a field: each element of an array, and null if it is missing. */
function indexedValues(document: Document, field: string): string[] {
  const values = valuesAt(document, splitPath(field));
  const texts = values.flatMap((value) =>
    Array.isArray(value) ? (value.length === 0 ? ['nothing'] : value.map(toText)) : [toText(value)],
  );
  return [...new Set(texts.length === 0 ? ['null'] : texts)];
}

/** Returns the entries of an index for a document. */
function indexEntries({ key }: IndexSpec, document: Document): string[] {
  const values = Object.keys(key).map((field) => indexedValues(document, field));
  return values.reduce(
    (entries: string[], each) => entries.flatMap((entry) => each.map((text) => `${entry} ${text}`)),
    [''],
  );
}

/** The documents of a collection and its indexes. */
export class Collection {
  readonly indexes = new Map<string, IndexSpec>();
  readonly #documents = new Map<string, Version[]>();
  readonly #unique = new Map<string, Lookup>();
  /** A look-up for each indexed field. */
  readonly #byField = new Map<string, Lookup>();

  addIndex(spec: IndexSpec): void {
    this.indexes.set(spec.name, spec);
    const added: Lookup[] = [];
    if (spec.unique) {
      const lookup = new Lookup((document) => indexEntries(spec, document));
      this.#unique.set(spec.name, lookup);
      added.push(lookup);
    }
    for (const field of Object.keys(spec.key)) {
      if (this.#byField.has(field)) continue;
      const lookup = new Lookup((document) => indexedValues(document, field));
      this.#byField.set(field, lookup);
      added.push(lookup);
    }
    for (const [id, versions] of this.#documents)
      for (const { document } of versions) if (document) for (const lookup of added) lookup.add(id, document);
  }

  /** Adds a version of a document. */
  put(id: string, version: Version): void {
    const versions = this.#documents.get(id);
    if (versions) versions.push(version);
    else this.#documents.set(id, [version]);
    const lookups = [...this.#unique.values(), ...this.#byField.values()];
    if (version.document) for (const lookup of lookups) lookup.add(id, version.document);
  }

  /** Returns a document as of an entry of the log. */
  get(id: string, at: number): Document | undefined {
    return this.#documents.get(id)?.findLast((version) => version.at <= at)?.document;
  }

  /** @throws Refusal if another document has the same entry in a unique index */
  expectUnique(namespace: string, document: Document): void {
    const id = toText(document._id);
    for (const [name, lookup] of this.#unique) {
      const spec = this.indexes.get(name) as IndexSpec;
      for (const entry of lookup.toTexts(document)) {
        for (const other of lookup.find(entry)) {
          const latest = other === id ? undefined : this.get(other, Number.POSITIVE_INFINITY);
          if (latest && lookup.toTexts(latest).includes(entry)) throw duplicate(namespace, spec, document);
        }
      }
    }
  }

  /** Returns all documents as of an entry of the log. */
  all(at: number): Document[] {
    return [...this.#documents.keys()].flatMap((id) => this.get(id, at) ?? []);
  }

  /** Finds documents as of an entry of the log. */
  find(
    at: number,
    filter: Document,
    { sort, skip = 0, limit = 0 }: { sort?: Document; skip?: number; limit?: number } = {},
  ) {
    const ids = this.#candidates(filter);
    const documents = ids ? [...ids].flatMap((id) => this.get(id, at) ?? []) : this.all(at);
    const found = sorted(documents.filter(compileMatcher(filter)), sort);
    return found.slice(skip, limit === 0 ? undefined : skip + limit);
  }

  /** Returns the ids of all documents that match a filter, and perhaps of others; undefined if no index helps. */
  #candidates({ _id, ...others }: Document): Set<string> | undefined {
    // An id is the most selective condition.
    const sets = Object.entries(_id === undefined ? others : { _id }).flatMap(([field, condition]): Set<string>[] => {
      if (field === '$or') {
        const each = (condition as Document[]).map((one) => this.#candidates(one));
        return each.every((ids) => ids !== undefined) ? [new Set(each.flatMap((ids) => [...ids]))] : [];
      }
      if (field === '$and') return (condition as Document[]).flatMap((each) => this.#candidates(each) ?? []);
      const wanted: unknown[] | undefined = isCondition(condition)
        ? (condition.$in ?? (condition.$eq && [condition.$eq]))
        : [condition];
      if (!wanted || wanted.some((value) => value instanceof RegExp || Array.isArray(value))) return [];
      const texts = wanted.map(toText);
      if (field === '_id') return [new Set(texts)];
      const lookup = this.#byField.get(field);
      return lookup ? [new Set(texts.flatMap((text) => [...lookup.find(text)]))] : [];
    });
    return sets.reduce(
      (best: Set<string> | undefined, each) => (best && best.size <= each.size ? best : each),
      undefined,
    );
  }
}

function duplicate(namespace: string, { name, key }: IndexSpec, document: Document): Refusal {
  const values = Object.keys(key).map((field) => [field, valuesAt(document, splitPath(field))[0] ?? null]);
  const message = `E11000 duplicate key error collection: ${namespace} index: ${name}`;
  return new Refusal(11000, 'DuplicateKey', message, { keyPattern: key, keyValue: Object.fromEntries(values) });
}

export const ID_INDEX: IndexSpec = { name: '_id_', key: { _id: 1 } };

/** The collections of a member, as of the last applied entry of its log. */
export class Data {
  readonly collections = new Map<string, Collection>();

  apply(at: number, change: Change): void {
    const { namespace } = change;
    if (change.kind === 'no collection') {
      this.collections.delete(namespace);
      return;
    }
    const collection = this.collections.get(namespace) ?? new Collection();
    this.collections.set(namespace, collection);
    if (change.kind === 'document') collection.put(change.id, { at, document: change.document });
    else collection.addIndex(change.spec);
  }
}
