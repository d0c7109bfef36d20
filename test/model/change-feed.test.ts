import { expect, test, vi } from 'vitest';
import { changeFeed, type FeedRules } from './change-feed.ts';
import { explore } from './explorer.ts';

vi.setConfig({ testTimeout: 240_000 });

/** Plausible designs that miss a change. */
const FLAWS: Readonly<Record<string, Partial<FeedRules>>> = {
  'a lead is marked in a second write': { marksInTheSameWrite: false },
  'an acknowledgement covers later changes': { comparesRevisions: false },
  'an earlier acknowledgement covers a resent change': { resendingIsARevision: false },
  'changes that a failover can undo are reported': { readsMajority: false },
  'changes are reported in the order of clocks': { keepsPending: false },
  'a consumer overwrites a newer state by an older one': { consumersKeepNewer: false },
  'a consumer acknowledges a change before it applies it': { consumersApplyFirst: false },
};

// @proves feed-2
test('no change is missed in any state, and every change arrives in the end', () => {
  const { states, fault } = explore(changeFeed());

  console.info(`the feed of changes: ${states} states`);
  expect(fault).toBeUndefined();
});

test.each(Object.entries(FLAWS))('a change would be missed if %s', (_, rules) => {
  const { fault } = explore(changeFeed(rules));

  expect(fault?.what).toBe('a change was missed');
  expect(fault?.trace.length).toBeLessThan(12);
});

test('the shortest trace of a consumer that overwrites a newer state by an older one', () => {
  expect(explore(changeFeed(FLAWS['a consumer overwrites a newer state by an older one'])).fault?.trace).toEqual([
    'the copy is lost, and a resend is requested',
    'writer 0 reads the lead',
    'writer 0 changes the lead',
    'consumer 0 pulls',
    'a majority stores the write',
    'consumer 1 pulls',
    'consumer 1 applies',
    'consumer 0 applies',
    'consumer 1 acknowledges',
    'a majority stores the write',
  ]);
});
