import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { parseFilter } from '../../src/domain/lead-filter.ts';
import { newId } from '../../src/domain/new-id.ts';
import { Faults, MAX_FAULTS, Refusal } from '../../src/domain/refusal.ts';
import type { Store } from '../../src/store/store.ts';
import {
  acknowledgeLeadChanges,
  findMissingLeads,
  LeadChangePoller,
  resendLeads,
} from '../../src/usecases/change-feed.ts';
import { createConsumer } from '../../src/usecases/consumers.ts';
import { setAsideLeadChanges, takeBackLeadChanges } from '../../src/usecases/set-aside.ts';

/** Creates a list that counts how often its elements are read. */
function countedList<Element>(length: number, element: Element) {
  const counted = { reads: 0, list: [] as readonly Element[] };
  counted.list = new Proxy(Array<Element>(length).fill(element), {
    get(target, name, receiver) {
      if (typeof name === 'string' && /^\d+$/.test(name)) counted.reads += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  return counted;
}

/** A store that fails when it is used, because refused requests neither read nor write. */
const deps = {
  store: new Proxy({} as Store, {
    get(_, name) {
      throw new Error(`a refused request must not use the store: ${String(name)}`);
    },
  }),
  clock: () => new Date(),
  newId,
};
const poller = new LeadChangePoller(async () => []);
const consumer = { number: 1, name: 'crm' } as Parameters<typeof setAsideLeadChanges>[1];
const named = { studioId: '', leadId: '', revision: -1, reason: '', retryAt: new Date(Number.NaN) };
const by = { memberId: undefined, caller: null, callId: null };
const anyTime = { start: null, end: null };

/** Each use case with a caller's list: the maximum length, an invalid element, and the call. */
const LISTS: readonly [string, max: number, element: unknown, (list: never) => unknown][] = [
  ['acknowledgements', 500, named, (list) => acknowledgeLeadChanges(deps, poller, list, consumer)],
  ['leads to set aside', 500, named, (list) => setAsideLeadChanges(deps, consumer, list)],
  ['leads to resend', 500, '', (leadIds) => resendLeads(deps, { studioId: 's', pageToken: '', leadIds, ...by })],
  ['leads that may be missing', 500, '', (leadIds) => findMissingLeads(deps, { studioId: 's', leadIds })],
  [
    'leads to take back',
    500,
    '',
    (leadIds) => takeBackLeadChanges(deps, consumer, { studioId: 's', leadIds, all: false, pageToken: '', ...by }),
  ],
  [
    'studios of a consumer',
    100,
    '',
    (studioIds) =>
      createConsumer(deps, {
        ...{ name: 'crm', studioIds, allStudios: false, includeTestStudios: false, start: 'now', ...by },
      }),
  ],
];

async function findRefusal(run: () => unknown): Promise<Refusal> {
  const error = await Promise.try(run).catch((error) => error);
  expect(error).toBeInstanceOf(Refusal);
  return error as Refusal;
}

// @proves hostile-2 bounds-214
test.each(LISTS)(
  'a list of %s that is too long is refused without reading any element',
  async (_, max, element, run) => {
    const counted = countedList(200_000, element);
    const { faults } = await findRefusal(() => run(counted.list as never));
    expect(faults.map(({ message }) => message)).toEqual([`must have at most ${max} elements`]);
    expect(counted.reads).toBe(0);
  },
);

// @proves hostile-2 bounds-214
test.each(LISTS)('reading a list of faulty %s ends at the maximum number of faults', async (_, max, element, run) => {
  const counted = countedList(max, element);
  const { faults } = await findRefusal(() => run(counted.list as never));
  expect(faults).toHaveLength(MAX_FAULTS);
  expect(counted.reads).toBeLessThanOrEqual(MAX_FAULTS);
});

test('a filter may have the maximum number of sources', () => {
  const [faults, counted] = [new Faults(), countedList(20, randomUUID())];
  const filter = parseFilter({ stages: [], sourceIds: counted.list, created: anyTime, updated: anyTime }, faults);
  expect(() => faults.refuseIfAny()).not.toThrow();
  expect(filter?.sourceIds).toEqual([counted.list[0]]);
});
