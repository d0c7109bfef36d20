import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { inTime } from '../../common/in-time.ts';
import type { LeadChange } from '../../src/domain/lead-change.ts';
import {
  LeadChangePoller,
  MAX_LEADS_PER_POLL,
  type SentChanges,
  watchLeadChanges,
} from '../../src/usecases/change-feed.ts';
import { aLead, NOW, plus, times } from '../support/builders.ts';

test('calls during a poll share the next one, whether this one succeeds or fails', async () => {
  const polls: PromiseWithResolvers<LeadChange[]>[] = [];
  const poller = new LeadChangePoller(() => {
    const poll = Promise.withResolvers<LeadChange[]>();
    polls.push(poll);
    return poll.promise;
  });
  const turn = () => new Promise(setImmediate);
  const first = poller.now();
  await turn();
  const later = [poller.now(), poller.now()];
  polls[0]?.reject(new Error('cut off'));
  await expect(first).rejects.toThrow('cut off');
  await turn();
  polls[1]?.resolve([]);

  expect(new Set(await Promise.all(later)).size).toBe(1);
  expect(polls).toHaveLength(2);
});

// @proves feed-8
test('a lead that waits again is sent again over the same watch, even with the same revision', async () => {
  const change: LeadChange = { lead: aLead(), revision: 5, since: NOW, kinds: [], attempts: 0 };
  const again = { ...change, since: plus(NOW, 1000) };
  const polls = [[change], [change], [again]];
  const poller = new LeadChangePoller(async () => polls.shift() ?? [again]);
  const ending = new AbortController();
  const sent: LeadChange[] = [];

  for await (const { changes } of watchLeadChanges(poller, ending.signal)) {
    sent.push(...changes);
    if (sent.length === 2) ending.abort();
  }

  expect(sent).toEqual([change, again]);
});

test('a lead displaced from a full poll is sent again, and each message says that more wait', async () => {
  const change = (): LeadChange => ({ lead: aLead(), revision: 5, since: NOW, kinds: [], attempts: 0 });
  const [waiting, displaced, earlier] = [times(MAX_LEADS_PER_POLL - 1, change), change(), change()];
  const full = [...waiting, displaced];
  const polls = [full, full, [earlier, ...waiting], full];
  const poller = new LeadChangePoller(async () => polls.shift() ?? full);
  const ending = new AbortController();
  const sent: SentChanges[] = [];

  for await (const message of watchLeadChanges(poller, ending.signal)) {
    sent.push(message);
    if (polls.length === 0) ending.abort();
  }

  expect(sent.flatMap(({ changes }) => changes)).toEqual([...full, earlier, displaced]);
  expect(sent.filter(({ heldBack }) => !heldBack)).toEqual([]);
});

test('acknowledgements between polls suppress no heartbeat of a watch', async () => {
  const changes = [1, 2, 3].map(
    (revision): LeadChange => ({ lead: aLead(), revision, since: NOW, kinds: [], attempts: 0 }),
  );
  const polls = [changes, changes.slice(1), changes.slice(2)];
  const poller = new LeadChangePoller(async () => polls.shift() ?? []);
  /** The number of changes in each message, and the number of polls still to come. */
  const sent: [number, number][] = [];

  const ending = new AbortController();
  for await (const { changes } of watchLeadChanges(poller, ending.signal, 0)) {
    sent.push([changes.length, polls.length]);
    if (polls.length === 0) ending.abort();
  }

  const beats = [2, 1, 0].map((left) => [0, left]);
  expect(sent).toEqual([[3, 2], ...beats]);
});

test.each([2 ** 31, Number.MAX_SAFE_INTEGER])(
  'a wait of %i ms, longer than timers can be, does not end at once',
  async (ms) => {
    const wait = inTime(new Promise(() => {}), ms).then(() => 'ended');
    expect(await Promise.race([wait, sleep(50, 'goes on')])).toBe('goes on');
  },
);

test('a watch gets heartbeats during a long poll, and then the changes found', async () => {
  const change: LeadChange = { lead: aLead(), revision: 5, since: NOW, kinds: [], attempts: 0 };
  const slow = Promise.withResolvers<LeadChange[]>();
  const poller = new LeadChangePoller(() => slow.promise);
  const ending = new AbortController();
  const sent: (readonly LeadChange[])[] = [];

  for await (const { changes } of watchLeadChanges(poller, ending.signal, 1000)) {
    sent.push(changes);
    if (sent.length === 2) slow.resolve([change]);
    if (changes.length > 0) ending.abort();
  }

  expect(sent).toEqual([[], [], [change]]);
});
