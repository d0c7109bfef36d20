import { describe, expect, test } from 'vitest';
import { asCreated, isOpen, nextUpdate } from '../../src/domain/lead.ts';
import { aLead, NOW, plus } from '../support/builders.ts';

describe('leads', () => {
  test.each([
    ['new', true],
    ['contacted', true],
    ['trial_booked', true],
    ['trial_attended', true],
    ['won', false],
    ['lost', false],
  ] as const)('a lead that is %s is open: %s', (stage, open) => {
    expect(isOpen(stage)).toBe(open);
  });

  test('a replay returns the lead as it was created', () => {
    const lead = aLead({ note: 'as typed' });

    expect(asCreated({ ...lead, stage: 'won', updatedAt: plus(lead.createdAt, 5000) })).toEqual(lead);
  });
});

describe('the next update', () => {
  test.each([
    ['a day later', 86_400_000, 86_400_000],
    ['a millisecond later', 1, 1],
    ['at the same millisecond', 0, 1],
    ['a millisecond earlier', -1, 1],
    ['a year earlier', -31_536_000_000, 1],
  ])('requested %s, is later than the one before', (_, ahead, grows) => {
    expect(nextUpdate(NOW, plus(NOW, ahead))).toEqual(plus(NOW, grows));
  });
});
