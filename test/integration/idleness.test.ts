import { globSync, readFileSync } from 'node:fs';
import { type Runtime, Session } from 'node:inspector';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../support/builders.ts';
import { ROOT } from '../support/processes.ts';
import { aCapture, aService, LEADS } from '../support/service.ts';

/** Two kinds of entries may stay, because bounds limit them: the owners of keys, and the connections that clients keep open. */
const KEPT = /^(?:ApiKeyCache\.#entries|ClientConnections\.|Connections\.)/;

const service = aService();

/** A private field that is a map, a set or an array. */
const COLLECTION = /^ +(?:readonly )?#\w+[^\n=]*= (?:new (?:Map|Set)\b|\[\])/m;

type Class = { readonly prototype: object };

/** Loads the classes of both processes that are exported and have such fields. */
async function productClasses(): Promise<Class[]> {
  const files = globSync('{gateway,common,src}/**/*.ts', { cwd: ROOT }).map((file) => join(ROOT, file));
  const modules = await Promise.all(
    files.filter((file) => COLLECTION.test(readFileSync(file, 'utf8'))).map((file) => import(file)),
  );
  return modules.flatMap((module) => Object.values<Class>(module)).filter((each) => /^class\b/.test(`${each}`));
}

type Properties = Runtime.GetPropertiesReturnType & { readonly privateProperties?: Runtime.PropertyDescriptor[] };

/**
 * Finds the live objects of some classes. What is returned reads how many entries the maps, sets and arrays in their private fields
 * have, by class and field: nothing else sees a map that is never emptied.
 */
function lookInside(classes: readonly Class[]): () => Readonly<Record<string, number>> {
  const session = new Session();
  session.connect();
  onTestFinished(() => session.disconnect());
  const ask = <Answer>(method: string, params: object): Answer => {
    let answer: unknown;
    session.post(method, params, (error, result) => {
      if (error) throw error;
      answer = result;
    });
    return answer as Answer;
  };
  const propertiesOf = (objectId: string | undefined) =>
    ask<Properties>('Runtime.getProperties', { objectId, ownProperties: true });
  // One query for all, because each goes through the whole heap.
  class LookedInside {}
  const prototypes = classes
    .map(({ prototype }) => prototype)
    .filter((each) => Object.getPrototypeOf(each) === Object.prototype);
  for (const each of prototypes) Object.setPrototypeOf(each, LookedInside.prototype);
  Object.assign(globalThis, { LookedInside });
  // Other suites share these modules.
  onTestFinished(() => {
    for (const each of prototypes) Object.setPrototypeOf(each, Object.prototype);
    Reflect.deleteProperty(globalThis, 'LookedInside');
  });
  const expression = 'LookedInside.prototype';
  const { result } = ask<Runtime.EvaluateReturnType>('Runtime.evaluate', { expression });
  const query = { prototypeObjectId: result.objectId };
  const found = ask<Runtime.QueryObjectsReturnType>('Runtime.queryObjects', query).objects;
  const objects = propertiesOf(found.objectId).result.filter(({ name }) => /^\d+$/.test(name));
  return () => {
    const held: Record<string, number> = {};
    for (const { value: object } of objects) {
      for (const { name, value } of propertiesOf(object?.objectId).privateProperties ?? []) {
        const [, size] = /^(?:Map|Set|Array)\((\d+)\)$/.exec(value?.description ?? '') ?? [];
        const place = `${object?.className}.${name}`;
        if (size && !KEPT.test(place)) held[place] = (held[place] ?? 0) + Number(size);
      }
    }
    return held;
  };
}

// @proves hostile-1
test('once all requests are answered, no map of a process has an entry of them', async () => {
  const classes = await productClasses();
  expect(classes.length).toBeGreaterThan(10);
  const visit = async (studios: number) => {
    const each = await Promise.all(times(studios, () => service.aStudioWithKey()));
    await Promise.all(
      each.flatMap(({ secret }) => [
        ...times(4, () => service.post(secret, aCapture())),
        service.post(secret, '{'),
        service.post(`${secret.slice(0, -1)}x`, aCapture()),
        service.get(secret),
        service.get(secret, '?limit=0'),
        ...times(3, async () => {
          const signal = AbortSignal.timeout(2);
          const authorization = `Bearer ${secret}`;
          await fetch(service.url + LEADS, { headers: { authorization }, signal }).catch(() => {});
        }),
      ]),
    );
  };
  await visit(1);
  const held = lookInside(classes);
  await expect.poll(held).toMatchObject({ 'ExchangeBatcher.#queues': 0, 'ExchangeBatcher.#pendingOf': 0 });
  const before = held();
  await visit(30);
  await expect.poll(held, { interval: 500, timeout: 60_000 }).toEqual(before);
});
