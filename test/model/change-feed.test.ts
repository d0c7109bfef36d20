import { expect, test, vi } from 'vitest';
import { changeFeed, type FeedRules } from './change-feed.ts';
import { explore } from './explorer.ts';

vi.setConfig({ testTimeout: 240_000 });

/** Plausible designs that miss a change. */
const FLAWS: Readonly<Record<string, Partial<FeedRules>>> = {
  'a lead is marked in a second write': { marksInTheSameWrite: false },
  'an acknowledgement hides what came after': { comparesRevisions: false },
  'an acknowledgement of before hides what was asked for once more': { resendingIsARevision: false },
  'what a failover takes back is told': { readsMajority: false },
  'changes are told in the order of clocks': { keepsWhatIsWaiting: false },
  'a consumer puts what is older over what is newer': { consumersKeepNewer: false },
  'a consumer acknowledges what it has yet to apply': { consumersApplyFirst: false },
};

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

test('the shortest story of a consumer that puts what is older over what is newer', () => {
  expect(explore(changeFeed(FLAWS['a consumer puts what is older over what is newer'])).fault?.trace).toEqual([
    'the copy is lost, and asked for',
    'writer 0 reads the lead',
    'writer 0 changes the lead',
    'consumer 0 pulls',
    'a majority has what was written',
    'consumer 1 pulls',
    'consumer 1 applies',
    'consumer 0 applies',
    'consumer 1 acknowledges',
    'a majority has what was written',
  ]);
});
