import fc from 'fast-check';
import type { Contact } from '../../src/domain/contact.ts';
import { LEAD_STAGES, type LeadStage } from '../../src/domain/lead.ts';

/** Few, so that they meet: two studios, in a region whose phone numbers can be read. */
export const STUDIOS = 2;
const KEYS = 9;

/** Contacts, each in spellings that are one contact. */
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

/** What else a caller says of a lead. */
export const BODIES = [{ displayName: 'Ada' }, { displayName: 'Ada', note: 'Calls back.' }] as const;

/** Something that is asked of one of two processes on the same data. Leads are counted from the newest. */
export type Operation =
  | {
      readonly kind: 'create';
      readonly process: number;
      readonly studio: number;
      readonly key: number;
      /** Which of the contacts is used; that of the key, where it is 0. */
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
      /** Which of the contacts it gets; none of them: the one that it has. */
      readonly contact: number;
      readonly spelling: number;
      readonly body: number;
      /** Whether the time that is known of it is to be the one that it still has. */
      readonly isTimeExpected: boolean;
    }
  | { readonly kind: 'get'; readonly process: number; readonly lead: number; readonly ofAnother: boolean };

/** One page: the first, or the one after the last page that was read of a studio. */
export interface Listing {
  readonly kind: 'list';
  readonly process: number;
  readonly studio: number;
  readonly pageSize: number;
  readonly after: 'nothing' | 'own page' | 'page of another';
}

/** What happens next, and by how much the clock moves before it; milliseconds. */
export type Step = { readonly clock: number } & (
  | { readonly kind: 'at once'; readonly operations: readonly Operation[] }
  | Listing
  | { readonly kind: 'reopen'; readonly process: number }
);

const process = fc.nat(1);

/** Mostly the first of so many: there things meet. */
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

// It also stands still, and goes back.
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

/** What happens in one run. */
export const steps: fc.Arbitrary<Step[]> = fc.array(step, { maxLength: 25, size: 'max' });
