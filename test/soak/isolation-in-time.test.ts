import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { times } from '../support/builders.ts';
import { aCapture, aService, readLead, type StudioWithKey } from '../support/service.ts';
import { testSize } from '../tools/test-size.ts';

/** The number of timed requests of each kind; usually 0, because only a soak may depend on timing. */
const SAMPLES = testSize('ISOLATION_SAMPLES', { usual: 0, soak: 5000 });
const PATIENCE = { timeout: 60_000 + SAMPLES * 100 };

// @proves isolation-3
describe.runIf(SAMPLES > 0)('refusals of data of another studio take as long as those of unknown data', () => {
  const service = aService();
  let own: StudioWithKey;
  let other: StudioWithKey & { readonly leadIds: readonly string[]; readonly cursor: string };

  beforeAll(async () => {
    own = await service.aStudioWithKey();
    const studio = await service.aStudioWithKey();
    const leadIds: string[] = [];
    for (const _ of times(100, () => 0)) {
      leadIds.push((await readLead(await service.post(studio.secret, aCapture()), 201)).id);
    }
    const page = (await (await service.get(studio.secret, '?limit=1')).json()) as { nextCursor: string };
    other = { ...studio, leadIds, cursor: page.nextCursor };
  });

  // Unknown ids are derived from foreign ones, so that both look alike.
  const altered = (id: string) => id.slice(0, -6) + randomUUID().slice(-6);
  const list = (cursor: string) => ({ path: `?cursor=${cursor}` });
  const create = (sourceId: string) => ({ path: '', body: aCapture({ sourceId }) });
  const anyLead = () => other.leadIds[Math.floor(Math.random() * other.leadIds.length)] ?? '';
  const swapped = (cursor: string) => cursor.slice(0, -9) + [...cursor.slice(-9)].reverse().join('');

  test.each<[what: string, foreign: () => TimedRequest, unknown: () => TimedRequest]>([
    ['a lead', () => ({ path: `/${anyLead()}` }), () => ({ path: `/${altered(anyLead())}` })],
    ['a source', () => create(other.sourceId), () => create(altered(other.sourceId))],
    ['a cursor', () => list(other.cursor), () => list(swapped(other.cursor))],
  ])('refusing %s of another studio takes as long as an unknown one', PATIENCE, async (what, foreign, unknown) => {
    const samples = { foreign: [] as number[], unknown: [] as number[] };
    for (const index of times(SAMPLES + 200, (each) => each)) {
      // In random order, so that neither kind always follows the other.
      const kinds = Math.random() < 0.5 ? (['foreign', 'unknown'] as const) : (['unknown', 'foreign'] as const);
      for (const kind of kinds) {
        const took = await timed(kind === 'foreign' ? foreign() : unknown());
        if (index >= 200) samples[kind].push(took);
      }
    }
    const chance = chanceToBeSlower(samples.foreign, samples.unknown);
    // One standard deviation: two equal distributions come this close to one half two times in three.
    const deviation = Math.sqrt((2 * SAMPLES + 1) / (12 * SAMPLES ** 2));
    const [first, second] = [median(samples.foreign), median(samples.unknown)];
    console.info(
      `${what}: foreign ${first.toFixed(1)} µs, unknown ${second.toFixed(1)} µs (medians of ${SAMPLES}); the foreign one ` +
        `is slower with probability ${chance.toFixed(4)}, ${((chance - 0.5) / deviation).toFixed(1)} deviations from one half`,
    );
    expect(Math.abs(chance - 0.5) / deviation).toBeLessThan(5);
  });

  /** A request with the studio's own key; with a body it is a creation. */
  interface TimedRequest {
    readonly path: string;
    readonly body?: object;
  }

  /** Sends the request and returns its duration; microseconds. */
  async function timed({ path, body }: TimedRequest): Promise<number> {
    const headers = {
      authorization: `Bearer ${own.secret}`,
      ...(body && { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
    };
    const init = { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) };
    const begun = performance.now();
    const answer = await fetch(`${service.url}/v1/integrations/leads${path}`, init);
    await answer.arrayBuffer();
    const took = (performance.now() - begun) * 1000;
    expect(answer.status).toBe(path.startsWith('/') ? 404 : 400);
    return took;
  }
});

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/**
 * Returns the probability that a value of the first sample exceeds one of the second (Mann and Whitney); one half
 * when the distributions are equal.
 */
function chanceToBeSlower(first: readonly number[], second: readonly number[]): number {
  const all = [
    ...first.map((value) => ({ value, isFirst: true })),
    ...second.map((value) => ({ value, isFirst: false })),
  ];
  const ranks = all
    .toSorted((a, b) => a.value - b.value)
    .reduce((sum, { isFirst }, rank) => sum + (isFirst ? rank + 1 : 0), 0);
  return (ranks - (first.length * (first.length + 1)) / 2) / (first.length * second.length);
}
