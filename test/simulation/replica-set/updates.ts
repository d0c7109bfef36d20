import { BSON, type Document } from 'mongodb';
import { isCondition } from './queries.ts';
import { areEqual, compare, findField, isObject, NotSimulated, Refusal, toText, withField } from './values.ts';

/** The largest document; bytes. */
export const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;

type Change = (before: unknown) => unknown;

/** The effect of each operator on a field. */
const OPERATORS: Readonly<Record<string, (given: unknown, path: string) => Change>> = {
  $set: (given) => () => given,
  $unset: () => () => undefined,
  $min: (given) => (before) => (before === undefined || compare(given, before) < 0 ? given : before),
  $inc: (given) => (before) => Number(before ?? 0) + Number(given),
  $push: (given, path) => {
    const { $each, $slice, ...others } = given as Document;
    if (!Array.isArray($each) || Object.keys(others).length > 0) throw new NotSimulated(`$push of ${toText(given)}`);
    return (before = []) => {
      if (!Array.isArray(before)) throw new Refusal(2, 'BadValue', `The field '${path}' must be an array`);
      return [...before, ...$each].slice(Number($slice ?? 0));
    };
  },
};

/** Returns a function that updates a document, and returns the same one if nothing changes. @throws Refusal */
export function compileUpdate(update: Document): (document: Document) => Document {
  if (!isCondition(update)) throw new NotSimulated(`an update such as ${Object.keys(update)}`);
  const changes = Object.entries(update).flatMap(([name, fields]) =>
    Object.entries(fields as Document).map(([path, given]) => {
      const operator = OPERATORS[name];
      if (!operator) throw new NotSimulated(`${name} in an update`);
      return { path, isRemoval: name === '$unset', change: operator(given, path) };
    }),
  );
  // New fields are added in the order of their names.
  changes.sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
  const conflict = changes.find(({ path }, index) => `${changes[index + 1]?.path}.`.startsWith(`${path}.`));
  if (conflict)
    throw new Refusal(40, 'ConflictingUpdateOperators', `Updating '${conflict.path}' would create a conflict`);
  return (document) => {
    const after = changes.reduce(
      (changed, { path, isRemoval, change }) => changedAt(changed, path.split('.'), isRemoval, change),
      document,
    );
    if (!areEqual(after._id, document._id)) throw new Refusal(66, 'ImmutableField', "'_id' is immutable");
    if (after !== document && BSON.calculateObjectSize(after) > MAX_DOCUMENT_BYTES)
      throw new Refusal(17419, 'Location17419', 'Resulting document after update is too large');
    return after;
  };
}

function changedAt(
  document: Document,
  [name = '', ...rest]: readonly string[],
  isRemoval: boolean,
  change: Change,
): Document {
  const before = findField(document, name);
  if (rest.length === 0) return replaced(document, name, change(before));
  if (Array.isArray(before) && /^\d+$/.test(rest[0] ?? '')) throw new NotSimulated('an update of an element of a list');
  if (before === undefined ? isRemoval : isRemoval && !isObject(before)) return document;
  if (before !== undefined && !isObject(before)) {
    throw new Refusal(
      28,
      'PathNotViable',
      `Cannot create field '${rest[0]}' in element {${name}: ${kindText(before)}}`,
    );
  }
  return replaced(document, name, changedAt(before ?? {}, rest, isRemoval, change));
}

/** Returns the same document if nothing changes, not even the type of an equal number. */
const replaced = (document: Document, name: string, value: unknown): Document => {
  const before = findField(document, name);
  if (value === undefined) return before === undefined ? document : withField(document, name, value);
  return before !== undefined && areIdentical(before, value) ? document : withField(document, name, value);
};

/** Whether two values have the same bytes. */
const areIdentical = (a: unknown, b: unknown): boolean =>
  a === b || Buffer.compare(BSON.serialize({ a }), BSON.serialize({ a: b })) === 0;

const kindText = (value: unknown): string => toText(value).slice(0, 40);

/** Returns the document with which an upsert begins: the values in its filter. */
export function makeSeed(filter: Document): Document {
  for (const [name, value] of Object.entries(filter)) {
    if (name.startsWith('$') || name.includes('.') || isCondition(value))
      throw new NotSimulated(`an upsert by ${name}`);
  }
  return { ...('_id' in filter ? {} : { _id: new BSON.ObjectId() }), ...filter };
}
