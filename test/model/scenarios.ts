import type { Request, Scenario } from './world.ts';

const request = (key: string, data: string, contact = 'ada'): Request => ({ key, data, contact });

/** Each is small enough for an exhaustive search, and large enough for its subject. */
export const SCENARIOS = {
  'one key twice and a rival, with failovers': {
    requests: [request('a', '1'), request('a', '1'), request('b', '2')],
    movers: 1,
    failovers: true,
  },
  'one key with other data, and a rival': {
    requests: [request('a', '1'), request('a', '2'), request('b', '3')],
    movers: 1,
  },
  'one key for two contacts, and a rival for one of them': {
    requests: [request('a', '1'), request('a', '2', 'bob'), request('b', '3', 'bob')],
    movers: 1,
  },
  'two rivals and two movers, with failovers': {
    requests: [request('a', '1'), request('b', '2')],
    movers: 2,
    failovers: true,
  },
  'two leads with different contacts, and two movers that correct them to each other’s contact': {
    requests: [request('a', '1'), request('b', '2', 'bob')],
    movers: 2,
    corrections: ['ada', 'bob'],
    newRegions: 0,
  },
  'one key twice and another, and a mover that corrects leads to each other’s contact': {
    requests: [request('a', '1'), request('a', '1'), request('b', '2', 'bob')],
    movers: 1,
    corrections: ['ada', 'bob'],
  },
  'two leads with different contacts, one corrected to that of the other while the region changes': {
    requests: [request('a', '1'), request('b', '2', 'bob')],
    movers: 1,
    corrections: ['ada'],
    newRegions: 1,
  },
  'two rivals, and a region that changes twice': {
    requests: [request('a', '1'), request('b', '2')],
    movers: 1,
    newRegions: 2,
  },
} as const satisfies Record<string, Scenario>;

/** An insert may be carried out long after its call has stopped waiting for it and has given another answer. */
export const LATE_INSERTS: Scenario = { requests: [request('a', '1'), request('b', '2')], movers: 1, lateInserts: 1 };
