import type { DirectAccess, StoredRecord } from './direct-access.ts';

/** A kind of record that no release of the product writes, named by what is unreadable. */
export type Oddness =
  | 'the state of a lead'
  | 'the data of a lead'
  | 'the fingerprint of a lead'
  | 'a key'
  | 'a scope of a key'
  | 'the status of a studio'
  | 'the region of a studio'
  | 'the former regions of a studio'
  | 'the role of a member'
  | 'a source';

export const ODD_LEADS = [
  'the state of a lead',
  'the state of a lead',
  'the data of a lead',
  'the fingerprint of a lead',
] as const;
export const ODD_KEYS = ['a key', 'a key', 'a scope of a key'] as const;
export const ODD_STUDIOS = [
  'the status of a studio',
  'the region of a studio',
  'the former regions of a studio',
  'the role of a member',
  'a source',
] as const;

/** A time that can be stored, but that no response can represent. */
const NO_TIME = 8.64e15;

interface Odd {
  readonly kind: StoredRecord['kind'];
  /** Database field names, each with a possible odd value. */
  readonly fields: readonly (readonly [field: string, value: unknown])[];
}

type Oddities = Readonly<Record<Oddness, Odd>>;

/** @param word an unknown word, which no process may print */
const IN_SQLITE = (word: string): Oddities => ({
  'the state of a lead': {
    kind: 'lead',
    fields: [
      ['stage', word],
      ['stage', 'toString'],
      ['updated_at', NO_TIME],
    ],
  },
  'the data of a lead': {
    kind: 'lead',
    fields: [
      ['contact_type', word],
      ['display_name', ''],
      ['note', word.repeat(1000)],
      ['source_id', word],
      ['created_at', NO_TIME],
    ],
  },
  'the fingerprint of a lead': {
    kind: 'lead',
    fields: [
      ['fingerprint', word],
      ['fingerprint_version', 99],
    ],
  },
  'a key': {
    kind: 'key',
    fields: [
      ['name', ''],
      ['name', word.repeat(50)],
      ['name', ''],
      ['member_id', `${word}.b`],
      ['secret_hint', word],
      ['created_at', NO_TIME],
      ['expires_at', NO_TIME],
    ],
  },
  'a scope of a key': { kind: 'key', fields: [['scopes', `leads.read leads.create ${word}`]] },
  'the status of a studio': {
    kind: 'studio',
    fields: [
      ['status', word],
      ['status', 'toString'],
    ],
  },
  'the region of a studio': { kind: 'studio', fields: [['region_code', word]] },
  'the former regions of a studio': {
    kind: 'studio',
    fields: [
      ['claim_renewal', word],
      ['claim_renewal', 'null'],
    ],
  },
  'the role of a member': { kind: 'member', fields: [['role', word]] },
  'a source': { kind: 'source', fields: [['name', '']] },
});

const IN_MONGODB = (word: string): Oddities => ({
  'the state of a lead': {
    kind: 'lead',
    fields: [
      ['stage', word],
      ['stage', undefined],
      ['stage', 1],
      ['updatedAt', new Date(NO_TIME)],
    ],
  },
  'the data of a lead': {
    kind: 'lead',
    fields: [
      ['displayName', undefined],
      ['contact', null],
      ['contact.type', word],
      ['sourceId', undefined],
      ['note', { text: word }],
      ['createdAt', 'yesterday'],
    ],
  },
  'the fingerprint of a lead': {
    kind: 'lead',
    fields: [
      ['idempotency.fingerprint', undefined],
      ['idempotency.fingerprint', word],
      ['idempotency.fingerprintVersion', '1'],
    ],
  },
  'a key': {
    kind: 'key',
    fields: [
      ['name', undefined],
      ['name', word.repeat(50)],
      ['scopes', 'leads.read'],
      ['memberId', null],
      ['expiresAt', '2099-01-01'],
      ['secretHint', word],
    ],
  },
  'a scope of a key': { kind: 'key', fields: [['scopes', ['leads.read', null, word, 'leads.create']]] },
  'the status of a studio': {
    kind: 'studio',
    fields: [
      ['status', word],
      ['status', undefined],
      ['status', 1],
    ],
  },
  'the region of a studio': {
    kind: 'studio',
    fields: [
      ['regionCode', word],
      ['regionCode', undefined],
    ],
  },
  'the former regions of a studio': {
    kind: 'studio',
    fields: [
      ['formerRegions', word],
      ['formerRegions', [word]],
      ['renewal', { step: 'first' }],
    ],
  },
  'the role of a member': {
    kind: 'member',
    fields: [
      ['role', word],
      ['role', null],
    ],
  },
  'a source': {
    kind: 'source',
    fields: [
      ['name', 5],
      ['enabled', 'yes'],
    ],
  },
});

const ODDITIES = { SQLite: IN_SQLITE, MongoDB: IN_MONGODB } as const;

/** Returns a field and the odd value to write into it. */
export function oddValue(
  { database }: Pick<DirectAccess, 'database'>,
  oddness: Oddness,
  { which, word }: { readonly which: number; readonly word: string },
): { readonly kind: StoredRecord['kind']; readonly field: string; readonly value: unknown } {
  const { kind, fields } = ODDITIES[database](word)[oddness];
  const [field, value] = fields[which % fields.length] as (typeof fields)[number];
  return { kind, field, value };
}
