import fc from 'fast-check';
import type { Contact } from '../../src/domain/contact.ts';
import { LEAD_STAGES, type LeadStage } from '../../src/domain/lead.ts';

/** Few, so that operations conflict: two studios, in a region whose phone numbers are normalized. */
export const STUDIOS = 2;
const KEYS = 9;

/** Contacts, each in several spellings. */
export const CONTACTS: readonly (readonly Contact[])[] = [
  [
    { type: 'email', value: 'ada@example.org' },
    { type: 'email', value: 'ADA@Example.org' },
  ],
  [
    { type: 'phone', value: '+49 30 1234567' },
    { type: 'phone', value: '030 / 123 45 67' },
  ],
  [
    { type: 'email', value: 'grace@example.org' },
    { type: 'email', value: 'Grace@example.org' },
  ],
];

/** The other data of a lead. */
export const BODIES = [{ displayName: 'Ada' }, { displayName: 'Ada', note: 'Calls back.' }] as const;

/** An operation sent to one of two processes on the same data. Leads are counted from the newest. */
export type Operation =
  | {
      readonly kind: 'create';
      readonly process: number;
      readonly studio: number;
      readonly key: number;
      /** The index of the contact; 0: the one that belongs to the key. */
      readonly otherContact: number;
      readonly spelling: number;
      readonly body: number;
    }
  | {
      readonly kind: 'move';
      readonly process: number;
      readonly lead: number;
      readonly ofAnother: boolean;
      readonly stage: LeadStage;
    }
  | {
      readonly kind: 'correct';
      readonly process: number;
      readonly lead: number;
      readonly ofAnother: boolean;
      /** The index of the new contact; out of range: the contact that it has. */
      readonly contact: number;
      readonly spelling: number;
      readonly body: number;
      /** Whether the expected time is the current one, as far as known. */
      readonly isTimeExpected: boolean;
    }
  | { readonly kind: 'get'; readonly process: number; readonly lead: number; readonly ofAnother: boolean };

/** One page: the first, or the one after the last page read from a studio. */
export interface Listing {
  readonly kind: 'list';
  readonly process: number;
  readonly studio: number;
  readonly pageSize: number;
  readonly after: 'nothing' | 'own page' | 'page of another';
}

/** The next event, and how far the clock moves before it; milliseconds. */
export type Step = { readonly clock: number } & (
  | { readonly kind: 'at once'; readonly operations: readonly Operation[] }
  | Listing
  | { readonly kind: 'reopen'; readonly process: number }
);

const process = fc.nat(1);

/** Mostly the first of `count`, so that operations conflict. */
const mostlyFirst = (count: number) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(count - 1) });

const studio = mostlyFirst(STUDIOS);
const lead = fc.nat(7);
const ofAnother = mostlyFirst(2).map((answer) => answer === 1);

const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('create'),
      process,
      studio,
      key: fc.nat(KEYS - 1),
      otherContact: mostlyFirst(CONTACTS.length),
      spelling: mostlyFirst(2),
      body: mostlyFirst(BODIES.length),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('move'),
      process,
      lead,
      ofAnother,
      stage: fc.oneof(fc.constantFrom(...LEAD_STAGES), fc.constantFrom('won', 'new')),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('correct'),
      process,
      lead,
      ofAnother,
      contact: fc.nat(CONTACTS.length),
      spelling: fc.nat(1),
      body: fc.nat(BODIES.length - 1),
      isTimeExpected: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('get'), process, lead, ofAnother }) },
);

// The clock also stops, and goes backwards.
const clock = fc.integer({ min: -3, max: 10 });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('at once'),
      clock,
      operations: fc.array(operation, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('list'),
      clock,
      process,
      studio,
      pageSize: fc.integer({ min: 1, max: 3 }),
      after: fc.constantFrom('nothing', 'own page', 'own page', 'own page', 'page of another'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen'), clock, process }) },
);

/** The steps of one run. */
export const steps: fc.Arbitrary<Step[]> = fc.array(step, { maxLength: 25, size: 'max' });
