import { EventEmitter, getEventListeners } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { type Runtime, Session } from 'node:inspector';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../support/builders.ts';
import { aCapture, aService, LEADS } from '../support/service.ts';
import { ROOT } from '../tools/processes.ts';

/** Two kinds of entries may stay because they have limits: the owners of keys, and open client connections. */
const KEPT = /^(?:ApiKeyCache\.#entries|ClientConnections\.|Connections\.)/;

/** How many more listeners and timers there may be for connections, which are fewer than requests. */
const MORE = 20;

const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

const service = aService();

/** Matches a private field that is a map, a set or an array. */
const COLLECTION = /^ +(?:readonly )?#\w+[^\n=]*= (?:new (?:Map|Set)\b|\[\])/m;

type Class = { readonly prototype: object };

/** Loads the exported classes of both processes that have such fields. */
async function productClasses(): Promise<Class[]> {
  const files = globSync('{gateway,common,src}/**/*.ts', { cwd: ROOT }).map((file) => join(ROOT, file));
  const modules = await Promise.all(
    files.filter((file) => COLLECTION.test(readFileSync(file, 'utf8'))).map((file) => import(file)),
  );
  return modules.flatMap((module) => Object.values<Class>(module)).filter((each) => /^class\b/.test(`${each}`));
}

type Properties = Runtime.GetPropertiesReturnType & { readonly privateProperties?: Runtime.PropertyDescriptor[] };

/** Returns functions that query the inspector of this process. */
function inspector() {
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
  /** Finds all live objects of a class, as an array. */
  const findAll = (of: Class): string | undefined => {
    Object.assign(globalThis, { lookedFor: of });
    const { result } = ask<Runtime.EvaluateReturnType>('Runtime.evaluate', { expression: 'lookedFor.prototype' });
    const query = { prototypeObjectId: result.objectId };
    return ask<Runtime.QueryObjectsReturnType>('Runtime.queryObjects', query).objects.objectId;
  };
  onTestFinished(() => void Reflect.deleteProperty(globalThis, 'lookedFor'));
  return { ask, findAll };
}

/** Counts the listeners of each live emitter and signal. The returned function names those that have more by then. */
function listeners(): () => readonly string[] {
  const { ask, findAll } = inspector();
  const alive = [EventEmitter, EventTarget].flatMap((each) => {
    const functionDeclaration = 'function () { globalThis.lookedFor = this; }';
    ask('Runtime.callFunctionOn', { objectId: findAll(each), functionDeclaration });
    return (globalThis as { lookedFor?: unknown }).lookedFor as readonly (EventEmitter | EventTarget)[];
  });
  const count = (each: EventEmitter | EventTarget) => {
    if (each instanceof EventTarget) return getEventListeners(each, 'abort').length;
    // A prototype is also found, and has no events.
    const names = Object.hasOwn(each, '_events') ? each.eventNames() : [];
    return names.reduce((sum, name) => sum + each.listenerCount(name), 0);
  };
  const before = alive.map((each) => ({ each, listeners: count(each) }));
  return () =>
    before.flatMap(({ each, listeners }) =>
      count(each) > listeners + MORE ? [`${each.constructor.name}: ${count(each)} of ${listeners}`] : [],
    );
}

/**
 * Finds the live objects of some classes. The returned function counts the entries of the maps, sets and arrays in
 * their private fields, by class and field: nothing else notices a map that is never emptied.
 */
function lookInside(classes: readonly Class[]): () => Readonly<Record<string, number>> {
  const { ask, findAll } = inspector();
  const listProperties = (objectId: string | undefined) =>
    ask<Properties>('Runtime.getProperties', { objectId, ownProperties: true });
  // One query for all classes, because each goes through the whole heap.
  class LookedInside {}
  const prototypes = classes
    .map(({ prototype }) => prototype)
    .filter((each) => Object.getPrototypeOf(each) === Object.prototype);
  for (const each of prototypes) Object.setPrototypeOf(each, LookedInside.prototype);
  // Other suites share these modules.
  onTestFinished(() => {
    for (const each of prototypes) Object.setPrototypeOf(each, Object.prototype);
  });
  const objects = listProperties(findAll(LookedInside)).result.filter(({ name }) => /^\d+$/.test(name));
  return () => {
    const held: Record<string, number> = {};
    for (const { value: object } of objects) {
      for (const { name, value } of listProperties(object?.objectId).privateProperties ?? []) {
        const [, size] = /^(?:Map|Set|Array)\((\d+)\)$/.exec(value?.description ?? '') ?? [];
        const place = `${object?.className}.${name}`;
        if (size && !KEPT.test(place)) held[place] = (held[place] ?? 0) + Number(size);
      }
    }
    return held;
  };
}

// @proves hostile-1
test('after all responses, a process has no entry, listener or timer left of the requests', async () => {
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
  await expect.poll(held).toMatchObject({ 'ExchangeBatcher.#queues': 0, 'ExchangeBatcher.#pendingByGroup': 0 });
  const [before, timersBefore, withMoreListeners] = [held(), timers(), listeners()];
  await visit(30);
  await expect.poll(held, { interval: 500, timeout: 60_000 }).toEqual(before);
  await expect.poll(withMoreListeners, { interval: 500, timeout: 60_000 }).toEqual([]);
  await expect.poll(timers, { interval: 500, timeout: 60_000 }).toBeLessThan(timersBefore + MORE);
});
