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
