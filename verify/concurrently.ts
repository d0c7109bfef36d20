import assert from 'node:assert/strict';
import type { Answer, Api } from './api.ts';

export const CONCURRENCY = 20;

export function concurrently(send: (index: number) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: CONCURRENCY }, (_, index) => send(index)));
}

/** Expects an action to add a number of leads to the studio. @throws AssertionError */
export async function expectAddedLeads(api: Api, count: number, act: () => Promise<void>): Promise<void> {
  const before = await api.countLeads();
  await act();
  const added = (await api.countLeads()) - before;
  assert.equal(added, count, `${added} leads were added instead of ${count}`);
}
