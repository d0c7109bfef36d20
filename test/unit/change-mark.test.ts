import { expect, test } from 'vitest';
import { type ChangeMark, DISTRIBUTED, deliveryOf, marked } from '../../src/domain/lead-change.ts';
import { NOW, plus } from '../support/builders.ts';

const LONG_AGO = plus(NOW, -1e10);

// @proves feed-8
test.each<[string, ChangeMark['since'], string[]]>([
  ['was imported and not distributed', NOW, ['created', 'updated']],
  ['is of release 1.0, which stored no time', new Date(0), ['created', 'updated']],
  ['was distributed', new Date(NOW.getTime() + DISTRIBUTED), ['updated']],
  ['was acknowledged', null, ['updated']],
])('named consumers hear of what they have not heard of a lead that %s, and changes', (_, since, kinds) => {
  const mark = marked({ revision: 0, since, kinds: { created: LONG_AGO } }, 'updated', plus(NOW, 1));
  expect(Object.keys(deliveryOf(mark, LONG_AGO, 1)?.kinds ?? {})).toEqual(kinds);
  expect(Object.values(mark.kinds)).not.toContainEqual(new Date(0));
});
