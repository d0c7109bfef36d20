import type { SentLead } from './history.ts';

type ContactValue = SentLead['contact'];

/** Regions that studios change between; the empty one is none. */
export const REGIONS = ['DE', 'FR', 'GB', 'none'] as const;
export type Region = (typeof REGIONS)[number];

/**
 * Phone numbers that mean the same, or not, by the region of their studio: what each stands for, worked out by hand from the
 * contract's rule (4.1.same-contact).
 */
const PHONES: readonly { readonly value: string; readonly stands: Readonly<Record<Region, string>> }[] = [
  everywhere('+49 30 7654321', '+49307654321'),
  everywhere('+49 (30) 765-4321', '+49307654321'),
  { value: '030 7654321', stands: { DE: '+49307654321', FR: '+33307654321', GB: '+44307654321', none: '0307654321' } },
  { value: '030/7654321', stands: { DE: '+49307654321', FR: '+33307654321', GB: '+44307654321', none: '0307654321' } },
  everywhere('+33 3 07 65 43 21', '+33307654321'),
  everywhere('0800 REIFEN', '0800reifen'),
  everywhere('0800 reifen', '0800reifen'),
  everywhere('0800 PIZZA', '0800pizza'),
];

function everywhere(value: string, stands: string) {
  return { value, stands: { DE: stands, FR: stands, GB: stands, none: stands } };
}

/** As they are typed. */
export const PHONE_NUMBERS = PHONES.map(({ value }) => value);

/** Those that have no country code: their places among the shared contacts. */
export const LOCAL_PHONES = PHONES.flatMap(({ value }, index) => (/^0\d+[ /]\d+$/.test(value) ? [index] : []));

/** How many contacts a studio's callers share. */
export const SHARED_CONTACTS = PHONES.length + 6;

/** A contact that a studio's callers share, in one of its spellings. */
export function sharedContact(personal: string, index: number): ContactValue {
  const phone = PHONES[index];
  if (phone) return { type: 'phone', value: phone.value };
  const emails = [
    `ada@${personal}.example`,
    `ADA@${personal}.Example`,
    `grace@${personal}.example`,
    `Grace@${personal}.example`,
    // Of Sigma two letters are small, and they are two.
    `nikos@\u03c2${personal}.example`,
    `nikos@\u03c3${personal}.example`,
  ];
  return { type: 'email', value: emails[index - PHONES.length] as string };
}

/** A contact that only the requests of one idempotency key have. */
export function ownContact(personal: string, idempotencyKey: string): ContactValue {
  return { type: 'email', value: `${idempotencyKey}@${personal}.example` };
}

/** Whether two contacts are surely, or possibly, the same in a studio that had these regions. */
export function sameness(
  a: ContactValue,
  b: ContactValue,
  regions: readonly Region[],
): 'surely' | 'possibly' | 'never' {
  if (a.type !== b.type) return 'never';
  if (a.value === b.value) return 'surely';
  if (a.type === 'email') return a.value.toLowerCase() === b.value.toLowerCase() ? 'surely' : 'never';
  const equal = regions.map((region) => standsFor(a.value, region) === standsFor(b.value, region));
  const isRead = (value: string) => value.startsWith('+') || /[a-z]/i.test(value);
  if (isRead(a.value) && isRead(b.value)) return equal[0] ? 'surely' : 'never';
  // Two leads that a new region makes one contact stay open both: then of one of them only its own text is held.
  if (regions.length === 1) return equal[0] ? 'surely' : 'never';
  return equal.includes(true) ? 'possibly' : 'never';
}

function standsFor(value: string, region: Region): string {
  return PHONES.find((each) => each.value === value)?.stands[region] ?? value;
}
