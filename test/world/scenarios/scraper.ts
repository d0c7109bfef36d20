import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { document } from '../../support/documented.ts';
import { now } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import { one } from './choices.ts';
import { aScenario, onRealMachine } from './scenario.ts';

/** The longest that a request for status may take without a disturbance; milliseconds. */
const ANSWERED_WITHIN_MS = 5000;

/** A line of a process's metrics that is no comment; the value as Go parses it, in any letter case. */
const SAMPLE =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\.)*",?)*\})?) ([+-]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|[iI][nN][fF])|[nN][aA][nN])$/;

/** The metrics at an address, and the processes that may have served them. */
interface Scrape {
  readonly pids: string;
  readonly counters: ReadonlyMap<string, number>;
}

/** The last metrics of each simulation, by address. */
const lastScrapes = new WeakMap<Simulation, Map<string, Scrape>>();

/** Prometheus scrapes the metrics of every process. */
export const scrape = aScenario({
  ...onRealMachine,
  weight: 3,
  choice: fc.constant(undefined),
  run: (sim) =>
    // Like a single scraper: never the same address twice concurrently.
    sim.inTurn('scraper', async () => {
      const last = lastScrapes.get(sim) ?? new Map<string, Scrape>();
      lastScrapes.set(sim, last);
      for (const url of sim.world.metricsUrls) await scrapeOnce(sim, url, last);
    }),
});

async function scrapeOnce(sim: Simulation, url: string, last: Map<string, Scrape>): Promise<void> {
  const pidsBefore = pidsOf(sim);
  const text = await read(sim, url, [200]);
  const pids = pidsOf(sim);
  if (text === undefined || pids !== pidsBefore) return;
  const counters = countersIn(text, (line) => sim.history.fail(`${url} returns a malformed line: ${line}`));
  const before = last.get(url);
  if (before?.pids === pids) {
    for (const [series, value] of before.counters) {
      const next = counters.get(series);
      if (next === undefined || next < value) sim.history.fail(`${url}: ${series} falls from ${value} to ${next}`);
    }
  }
  last.set(url, { pids, counters });
}

const pidsOf = ({ world }: Simulation): string =>
  world
    .processes()
    .map(({ pid }) => pid)
    .sort()
    .join();

/** Returns the value of every counter, by series. */
function countersIn(text: string, unreadable: (line: string) => void): ReadonlyMap<string, number> {
  const types = new Map<string, string>();
  const counters = new Map<string, number>();
  if (!text.endsWith('\n')) unreadable('the last line has no end');
  for (const line of text.split('\n').filter(Boolean)) {
    const [, typed = '', type = ''] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (typed) types.set(typed, type);
    if (line.startsWith('#')) continue;
    const [, series = '', value = ''] = SAMPLE.exec(line) ?? [];
    if (!series) unreadable(line);
    if (counters.has(series)) unreadable(`${series} twice`);
    const [name = ''] = series.split('{', 1);
    const isCounter =
      types.get(name) === 'counter' || types.get(name.replace(/_(?:bucket|count)$/, '')) === 'histogram';
    if (isCounter) counters.set(series, Number(value));
  }
  return counters;
}

/** A client requests the liveness, the readiness, or the API description of a gateway. */
export const lookFromOutside = aScenario({
  weight: 2,
  choice: fc.record({ url: fc.nat(2), path: fc.constantFrom('/healthz', '/readyz', '/v1/openapi.json') }),
  async run(sim, { url, path }) {
    const address = one(sim.world.urls, url) + path;
    const text = await read(sim, address, path === '/readyz' ? [200, 503] : [200]);
    if (text === undefined || path !== '/v1/openapi.json') return;
    if (!isDeepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(document))))
      sim.history.fail(`${address} describes another API`);
  },
});

/** Returns the response of an address; undefined if there is none, which only a disturbance may cause. */
async function read(sim: Simulation, url: string, expected: readonly number[]): Promise<string | undefined> {
  const begin = now();
  const signal = AbortSignal.timeout(ANSWERED_WITHIN_MS);
  const headers = { connection: 'close' };
  const response = await fetch(url, { headers, signal })
    .then(
      async (response) => ({ status: response.status, text: await response.text() }),
      (error) => ({ status: 0, text: `${error} ${error.cause}` }),
    )
    .catch((error) => ({ status: 0, text: `${error}` }));
  const isUsual = response.status === expected[0];
  sim.history.note('scraper', `${url} ${response.status}`, begin);
  if (response.status !== 0 && !expected.includes(response.status))
    sim.history.fail(`${url} is answered with ${response.status} ${response.text}`);
  if (!isUsual && !sim.isDisturbedSince(begin))
    sim.history.fail(`${url} is answered with ${response.status} ${response.text} without a disturbance`);
  return isUsual ? response.text : undefined;
}
