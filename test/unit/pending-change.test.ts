import { expect, test } from 'vitest';
import { DEFAULT_CONSUMER } from '../../src/domain/consumer.ts';
import { addChange, computeDelivery, DISTRIBUTED, type PendingChange } from '../../src/domain/lead-change.ts';
import { NOW, plus } from '../support/builders.ts';

const LONG_AGO = plus(NOW, -1e10);

// @proves feed-8
test.each<[string, PendingChange['since'], string[]]>([
  ['was imported and not distributed', NOW, ['created', 'updated']],
  ['is of release 1.0, which stored no time', new Date(0), ['created', 'updated']],
  ['was acknowledged', null, ['updated']],
])('a change to a lead that %s sends consumers every kind they have not seen', (_, since, kinds) => {
  const pending = addChange({ revision: 0, since, kinds: { created: LONG_AGO } }, 'updated', plus(NOW, 1));
  expect(Object.keys(computeDelivery(pending, LONG_AGO, 1)?.kinds ?? {})).toEqual(kinds);
  expect(Object.values(pending.kinds)).not.toContainEqual(new Date(0));
});

// @proves feed-8
test.each<[string, Date, Date]>([
  ['its first change', new Date(NOW.getTime() + DISTRIBUTED), NOW],
  ['the creation of its lead if no time is stored', new Date(DISTRIBUTED), LONG_AGO],
])('a change that release 1.2 distributed waits only for the default consumer, since %s', (_, since, first) => {
  const pending = { revision: 7, since, kinds: { created: first, updated: plus(NOW, 1) } };
  expect(computeDelivery(pending, LONG_AGO, DEFAULT_CONSUMER.number)).toEqual({ ...pending, since: first });
  expect(computeDelivery(pending, LONG_AGO, 1)).toBe(null);
  // The next change is for all consumers. Named consumers may get the former kinds again.
  const changed = addChange(pending, 'erased', plus(NOW, 2));
  expect(Object.keys(computeDelivery(changed, LONG_AGO, DEFAULT_CONSUMER.number)?.kinds ?? {})).toEqual([
    'created',
    'updated',
    'erased',
  ]);
  expect(Object.keys(computeDelivery(changed, LONG_AGO, 1)?.kinds ?? {})).toContain('erased');
});
