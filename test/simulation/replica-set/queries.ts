import type { Document } from 'mongodb';
import {
  areEqual,
  compare,
  findField,
  findKind,
  isObject,
  NotSimulated,
  toText,
  valuesAt,
  withField,
} from './values.ts';

/* Filters, projections, orders and pipelines, as far as the product uses them. */

/** Whether a value is a condition such as `{ $gt: 5 }`. */
export const isCondition = (value: unknown): value is Document =>
  isObject(value) && Object.keys(value).length > 0 && Object.keys(value).every((name) => name.startsWith('$'));

/** A compiled filter, created once for all documents. */
export type Matcher = (document: Document) => boolean;

export function compileMatcher(filter: Document): Matcher {
  return every(
    Object.entries(filter).map(([name, condition]): Matcher => {
      if (name === '$or') {
        const each = (condition as Document[]).map(compileMatcher);
        return (document) => each.some((one) => one(document));
      }
      if (name === '$and') return every((condition as Document[]).map(compileMatcher));
      if (name === '$expr') return (document) => evaluate(document, condition) === true;
      if (name.startsWith('$')) throw new NotSimulated(`${name} in a filter`);
      const path = name.split('.');
      const isMet = compileTest(condition);
      return (document) => isMet(valuesAt(document, path));
    }),
  );
}

const every =
  <Value>(tests: readonly ((value: Value) => boolean)[]) =>
  (value: Value): boolean =>
    tests.every((test) => test(value));

/** Tests whether values meet a condition. */
type Test = (values: readonly unknown[]) => boolean;

/** Tests whether one of the values, or of the elements of arrays among them, meets a condition. */
const some =
  (isMet: (value: unknown) => boolean): Test =>
  (values) =>
    values.some((value) => isMet(value) || (Array.isArray(value) && value.some(isMet)));

const equals = (wanted: unknown): Test =>
  some(
    wanted instanceof RegExp
      ? (value) => typeof value === 'string' && wanted.test(value)
      : (value) => areEqual(value, wanted),
  );

/** Compares only values of the same kind. */
const isOrdered =
  (isMet: (order: number) => boolean) =>
  (wanted: unknown): Test => {
    const kind = findKind(wanted);
    return some((value) => findKind(value) === kind && isMet(compare(value, wanted)));
  };

function equalsAny(wanted: readonly unknown[]): Test {
  if (wanted.some((each) => each instanceof RegExp)) {
    const each = wanted.map(equals);
    return (values) => each.some((test) => test(values));
  }
  const texts = new Set(wanted.map(toText));
  return some((value) => texts.has(toText(value)));
}

const not =
  (test: Test): Test =>
  (values) =>
    !test(values);

const TESTS: Readonly<Record<string, (wanted: unknown) => Test>> = {
  $eq: equals,
  $ne: (wanted) => not(equals(wanted)),
  $in: (wanted) => equalsAny(wanted as unknown[]),
  $nin: (wanted) => not(equalsAny(wanted as unknown[])),
  $lt: isOrdered((order) => order < 0),
  $lte: isOrdered((order) => order <= 0),
  $gt: isOrdered((order) => order > 0),
  $gte: isOrdered((order) => order >= 0),
  $exists: (wanted) => (values) =>
    values.some((value) => value !== undefined) === (wanted === true || Number(wanted) === 1),
  $not: (wanted) => not(compileTest(wanted)),
  $size: (wanted) => (values) => values.some((value) => Array.isArray(value) && value.length === Number(wanted)),
};

function compileTest(condition: unknown): Test {
  if (!isCondition(condition)) return equals(condition);
  return every(
    Object.entries(condition).map(([name, wanted]) => {
      const test = TESTS[name];
      if (!test) throw new NotSimulated(`${name} in a filter`);
      return test(wanted);
    }),
  );
}

/** Evaluates an expression of an aggregation. */
function evaluate(document: Document, expression: unknown): unknown {
  if (typeof expression === 'string' && expression.startsWith('$')) {
    return expression
      .slice(1)
      .split('.')
      .reduce((value: unknown, name) => findField(value, name), document);
  }
  if (!isCondition(expression)) return expression;
  const [[name = '', given] = []] = Object.entries(expression);
  const values = (Array.isArray(given) ? given : [given]).map((each) => evaluate(document, each));
  const [first, second] = values;
  switch (name) {
    case '$lt':
      return compare(first, second) < 0;
    case '$gte':
      return compare(first, second) >= 0;
    case '$ifNull':
      return first ?? second;
    case '$size':
      return (first as unknown[]).length;
    case '$objectToArray':
      return Object.entries(first as Document);
    default:
      throw new NotSimulated(`${name} in an expression`);
  }
}

/** Returns the fields of a document that a projection names, or all but those that it excludes. */
export function projected(document: Document, projection: Document = {}): Document {
  const paths = Object.entries(projection).map(([path, value]) => ({
    path,
    isIn: value === true || Number(value) === 1,
  }));
  if (paths.length === 0) return document;
  if (paths.every(({ isIn }) => !isIn)) {
    return paths.reduce((rest, { path }) => {
      if (path.includes('.')) throw new NotSimulated(`the exclusion of ${path}`);
      return withField(rest, path, undefined);
    }, document);
  }
  const kept = paths.filter(({ isIn }) => isIn).map(({ path }) => path.split('.'));
  const names = paths.some(({ path, isIn }) => path === '_id' && !isIn) ? kept : [['_id'], ...kept];
  return only(document, names) as Document;
}

function only(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (Array.isArray(value)) return value.map((each) => only(each, paths)).filter((each) => each !== undefined);
  if (!isObject(value)) return undefined;
  const fields = Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
    const inside = paths.filter(([first]) => first === name).map(([, ...rest]) => rest);
    if (inside.length === 0) return [];
    const kept = inside.some((rest) => rest.length === 0) ? each : only(each, inside);
    return kept === undefined ? [] : [[name, kept]];
  });
  return Object.fromEntries(fields);
}

/** Sorts documents by an order such as `{ slot: -1 }`. An array counts as its least or its greatest element. */
export function sorted(documents: readonly Document[], order: Document = {}): Document[] {
  const paths = Object.entries(order).map(([path, way]) => ({ path: path.split('.'), way: Number(way) }));
  const placed = documents.map((document) => ({
    document,
    place: paths.map(({ path, way }) =>
      valuesAt(document, path)
        .flat()
        .reduce((best, value, index) => (index === 0 || way * compare(value, best) < 0 ? value : best), undefined),
    ),
  }));
  placed.sort((a, b) => {
    for (const [index, { way }] of paths.entries()) {
      const difference = way * compare(a.place[index], b.place[index]);
      if (difference !== 0) return difference;
    }
    return 0;
  });
  return placed.map(({ document }) => document);
}

/** The `$group` stage by which a driver counts documents. */
const COUNT = { _id: 1, n: { $sum: 1 } };

/** Runs the stages of an aggregation. */
export function aggregated(documents: readonly Document[], pipeline: readonly Document[]): Document[] {
  return pipeline.reduce(
    (found: Document[], stage) => {
      const [[name = '', given] = []] = Object.entries(stage);
      switch (name) {
        case '$match':
          return found.filter(compileMatcher(given));
        case '$limit':
          return found.slice(0, Number(given));
        case '$group':
          if (toText(given) !== toText(COUNT)) throw new NotSimulated(`the group ${toText(given)}`);
          return found.length === 0 ? [] : [{ _id: given._id, n: found.length }];
        default:
          throw new NotSimulated(`the stage ${name}`);
      }
    },
    [...documents],
  );
}
