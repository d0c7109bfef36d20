/** A contact of a lead, as sent. */
export type ContactValue = { readonly type: 'email' | 'phone'; readonly value: string };

/** The regions that studios change between; `none`: the studio has no region. */
export const REGIONS = ['DE', 'FR', 'GB', 'none'] as const;
export type Region = (typeof REGIONS)[number];

/** The normalized forms of a local number. `none` is the number as dialled, which is compared in every region, too. */
const LOCAL_FORMS = { DE: '+49307654321', FR: '+33307654321', GB: '+44307654321', none: '0307654321' };

/**
 * Phone numbers, with their normalized forms per region of the studio. The forms are derived by hand from the contract's rule
 * (4.1.same-contact).
 */
const PHONES: readonly { readonly value: string; readonly forms: Readonly<Record<Region, string>> }[] = [
  inAllRegions('+49 30 7654321', '+49307654321'),
  inAllRegions('+49 (30) 765-4321', '+49307654321'),
  { value: '030 7654321', forms: LOCAL_FORMS },
  { value: '030\u30fc7654321', forms: LOCAL_FORMS },
  inAllRegions('+33 3 07 65 43 21', '+33307654321'),
  inAllRegions('0800 REIFEN', '0800reifen'),
  inAllRegions('0800 reifen', '0800reifen'),
  inAllRegions('0800 PIZZA', '0800pizza'),
  { value: '030 7654321, office', forms: LOCAL_FORMS },
];

function inAllRegions(value: string, form: string) {
  return { value, forms: { DE: form, FR: form, GB: form, none: form } };
}

/** The numbers as typed. */
export const PHONE_NUMBERS = PHONES.map(({ value }) => value);

/** The local parts and the first labels of addresses. */
const ADDRESSES = [
  ['ada', 'www'],
  ['ADA', 'WWW'],
  ['jos\u00e9', 'b\u00fccher'],
  ['Jose\u0301', 'b\u00fccher'],
  ['jos\u00e9\u200b', 'xn--bcher-kva'],
  // Sigma has two lowercase letters; contacts that differ in them are different.
  ['nikos', '\u03c2'],
  ['nikos', '\u03c3'],
] as const;

/** The number of contacts that a studio's callers share. */
export const SHARED_CONTACTS = PHONES.length + ADDRESSES.length;

/** Returns a contact that a studio's callers share, in one of its spellings. */
export function sharedContact(personal: string, index: number): ContactValue {
  const phone = PHONES[index];
  if (phone) return { type: 'phone', value: phone.value };
  const [local = '', label = ''] = ADDRESSES[index - PHONES.length] ?? [];
  return { type: 'email', value: `${local}@${label}.${personal}.example` };
}

/** Returns a contact that only requests with this idempotency key have. */
export function ownContact(personal: string, idempotencyKey: string): ContactValue {
  return { type: 'email', value: `${idempotencyKey}@${personal}.example` };
}

/** Returns a contact in the form that calls of the CRM use. */
export const inCall = ({ type, value }: ContactValue) => ({ value: { case: type, value } }) as const;

/** Tells whether two contacts are surely, possibly or never the same in a studio that had these regions. */
export function sameness(
  a: ContactValue,
  b: ContactValue,
  regions: readonly Region[],
): 'surely' | 'possibly' | 'never' {
  if (a.type !== b.type) return 'never';
  if (a.value === b.value) return 'surely';
  if (a.type === 'email') return addressForm(a.value) === addressForm(b.value) ? 'surely' : 'never';
  const isEqualIn = (region: Region) => normalizedIn(a.value, region) === normalizedIn(b.value, region);
  if (isEqualIn('none')) return 'surely';
  const equal = regions.map(isEqualIn);
  // A lead keeps the keys of the region in which it was opened, whatever the region is now.
  return equal.includes(true) ? (regions.length === 1 ? 'surely' : 'possibly') : 'never';
}

/** Normalizes an email address, as far as the addresses above need it. */
const addressForm = (address: string): string =>
  address.replace('\u200b', '').replace('xn--bcher-kva', 'b\u00fccher').normalize('NFC').toLowerCase();

function normalizedIn(value: string, region: Region): string {
  return PHONES.find((each) => each.value === value)?.forms[region] ?? value;
}
