import assert from 'node:assert/strict';
import type { Answer, Api } from './api.ts';

/** How many requests are made at once. */
export const CONCURRENCY = 20;

/** Does something many times at once. */
export function concurrently(ask: (index: number) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: CONCURRENCY }, (_, index) => ask(index)));
}

/** Expects the studio to have so many leads more after something was done. @throws AssertionError */
export async function addsLeads(api: Api, count: number, act: () => Promise<void>): Promise<void> {
  const before = await api.allLeads();
  await act();
  const after = await api.allLeads();
  const added = after.length - before.length;
  assert.equal(added, count, `the studio has ${added} leads more in place of ${count}`);
}
