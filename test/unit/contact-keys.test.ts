import { hash } from 'node:crypto';
import { type CountryCode, getCountries, getExampleNumber } from 'libphonenumber-js';
import examples from 'libphonenumber-js/examples.mobile.json' with { type: 'json' };
import { describe, expect, test } from 'vitest';
import { captureFault } from '../../common/rules/field-rules.ts';
import { type Contact, contactKeys, isRegionCode, type RegionCode } from '../../src/domain/contact.ts';
import { comparedContacts, listedContacts } from '../support/contact-lists.ts';

const email = (value: string): Contact => ({ type: 'email', value });
const phone = (value: string): Contact => ({ type: 'phone', value });

function meet(a: Contact, b: Contact, region: RegionCode | null): boolean {
  const keys = contactKeys(b, region);
  return contactKeys(a, region).some((key) => keys.includes(key));
}

const makePairs = <Value>(values: readonly Value[]): [Value, Value][] =>
  values.flatMap((a, index) => values.slice(index + 1).map((b): [Value, Value] => [a, b]));

/** Returns the phone library's example number of a region. */
function findExample(region: CountryCode) {
  const example = getExampleNumber(region, examples);
  if (!example) throw new Error(`${region} has no example`);
  return { national: example.formatNational(), international: example.formatInternational(), e164: example.number };
}

const REGIONS = getCountries();

/** The first letters of the regions, to split tests into short ones. */
const INITIALS = [...new Set(REGIONS.map((region) => region.charAt(0)))];
const regionsWith = (initial: string) => REGIONS.filter((region) => region.startsWith(initial));

const codePoints = Array.from({ length: 0x110000 }, (_, code) => code).filter((code) => code < 0xd800 || code > 0xdfff);
const matching = (pattern: RegExp): string[] =>
  codePoints.map((code) => String.fromCodePoint(code)).filter((character) => pattern.test(character));

/** Separators that people type between digits, and every mark, space and invisible character that programs paste. */
const TYPED = [
  '',
  ...' ./\\|_~*:-\t\u00a0\u2013\u2212\u30fc\uff70\u3161\u4e00',
  ', ',
  ' / ',
  ' . ',
  ') (',
  '] ',
  ' \u2013 ',
];
const MARKS = matching(/[\p{P}\p{S}\p{Z}\p{Cc}\p{Cf}]/u);

/** Each region tries one in SHARE marks. So each mark is tried with about two regions, or with dozens in a soak. */
const SHARE = process.env.SOAK ? 8 : 120;
const separatorsFor = (region: CountryCode) => [
  ...TYPED,
  ...MARKS.filter((_, index) => (index + REGIONS.indexOf(region)) % SHARE === 0),
];

/** Replaces everything between the digits of a number, except `+` and parentheses. */
const separatedBy = (separator: string, number: string) => number.replace(/[^\d+()]+/g, separator);

/** Returns a number in the digits of a script, given its zero. */
const inScript = (zero: string, number: string) =>
  number.replace(/\d/g, (digit) => String.fromCodePoint((zero.codePointAt(0) as number) + Number(digit)));
const ZEROS = matching(/\p{Nd}/u).filter((_, index) => index % 10 === 0);

// @proves leads-5 others-2
describe('two spellings are one contact', () => {
  test.each(comparedContacts('same'))('two spellings are one contact, like $title', ({ region, contacts }) => {
    const apart = makePairs(contacts).filter(([a, b]) => !meet(a, b, region));

    expect(apart).toEqual([]);
  });

  test.each(INITIALS)(
    'numbers of regions with %s match with or without a country code, whatever separates digits',
    (initial) => {
      const apart = regionsWith(initial).flatMap((region) => {
        const { national, international, e164 } = findExample(region);
        const typed = [
          ...[national, international, `00${e164.slice(1)}`].map((form) => ({ form, area: region, same: e164 })),
          ...[national, international].map((form) => ({ form, area: null, same: form })),
        ];
        return typed.flatMap(({ form, area, same }) => {
          const keys = contactKeys(phone(same), area);
          const spellings = separatorsFor(region).flatMap((separator) => [
            separatedBy(separator, form),
            form.replace(/[^\d+()]+/, separator),
          ]);
          return spellings.filter((spelling) => !contactKeys(phone(spelling), area).some((key) => keys.includes(key)));
        });
      });

      expect(MARKS.length).toBeGreaterThan(9000);
      expect(apart).toEqual([]);
    },
  );

  test('numbers match in the digits of every script', () => {
    const apart = REGIONS.flatMap((region) => {
      const { national, international } = findExample(region);
      return [national, international].flatMap((form) =>
        ZEROS.filter((zero) => !meet(phone(inScript(zero, form)), phone(form), region)),
      );
    });

    expect(ZEROS.length).toBeGreaterThan(60);
    expect(apart).toEqual([]);
  });
});

// @proves leads-5 others-1 others-3
describe('two contacts are different', () => {
  test.each(comparedContacts('different'))('two contacts are different, like $title', ({ region, contacts }) => {
    const merged = makePairs(contacts).filter(([a, b]) => meet(a, b, region));

    expect(merged).toEqual([]);
  });

  test('numbers of different regions, or that differ in a digit, are different contacts', () => {
    const examples = REGIONS.map((region) => findExample(region).e164);
    for (const region of REGIONS) {
      const { national, e164 } = findExample(region);
      const near = Array.from({ length: 9 }, (_, step) =>
        e164.replace(/\d$/, (digit) => String((Number(digit) + step + 1) % 10)),
      );
      const owners = new Map(contactKeys(phone(national), region).map((key) => [key, e164]));
      for (const number of [...examples, ...near]) {
        for (const key of contactKeys(phone(number), region)) {
          expect(owners.get(key) ?? number, `${number} in ${region}`).toBe(number);
          owners.set(key, number);
        }
      }
    }
  });

  test('an address and a number with the same text are different contacts', () => {
    expect(meet(email('12345@12345'), phone('12345@12345'), null)).toBe(false);
  });
});

// @proves leads-5 others-1
describe('two contacts share a key exactly if they share a form', () => {
  test.each(['DE', 'DK', null] as const)('phone numbers for %s share a key exactly if they share a form', (region) => {
    const typed = typedNumbers();

    expect(typed.length).toBeGreaterThan(1000);
    expect(
      wrongPairs(
        typed.map(({ text, forms }) => ({ contact: phone(text), forms: forms(region) })),
        region,
      ),
    ).toEqual([]);
  });

  test('generated email addresses share a key exactly if they share a form', () => {
    const typed = LOCAL_PARTS.flatMap((locals, local) =>
      DOMAINS.flatMap((domains, domain) =>
        locals.flatMap((each) =>
          domains.map((other) => ({ contact: email(`${each}@${other}`), forms: [`${local} ${domain}`] })),
        ),
      ),
    );

    expect(typed.length).toBeGreaterThan(200);
    expect(wrongPairs(typed, null)).toEqual([]);
  });
});

interface Expected {
  readonly contact: Contact;
  /** The forms that docs/explanation/contacts.md gives the contact. */
  readonly forms: readonly string[];
}

/** Returns a few of the pairs whose keys and forms disagree. */
function wrongPairs(typed: readonly Expected[], region: RegionCode | null): string[] {
  const all = typed.map(({ contact, forms }) => ({ text: contact.value, forms, keys: contactKeys(contact, region) }));
  const wrong: string[] = [];
  for (const [index, a] of all.entries()) {
    for (const b of all.slice(index + 1)) {
      const isSame = a.forms.some((form) => b.forms.includes(form));
      if (isSame !== a.keys.some((key) => b.keys.includes(key))) wrong.push(`${a.text} | ${b.text}: ${isSame}`);
      if (wrong.length > 20) return wrong;
    }
  }
  return wrong;
}

/** Local parts. Those in one row are equal. */
const LOCAL_PARTS = [
  ['ada', 'ADA', 'Ad\u00ada'],
  ['a.da'],
  ['ada+1'],
  ['istanbul', '\u0130stanbul'],
  ['i\u0307stanbul'],
  ['stra\u00dfe', 'STRA\u1e9eE'],
  ['strasse'],
  ['ren\u00e9e', 'RENE\u0301E'],
];

/** Domains. Those in one row are equal. */
const DOMAINS = [
  ['istanbul.example', 'ISTANBUL.example'],
  ['\u0130stanbul.example', 'i\u0307stanbul.example', 'xn--istanbul-o0e.example'],
  ['\u0131stanbul.example'],
  ['b\u00fccher.example', 'BU\u0308CHER.example', 'xn--bcher-kva.example'],
  ['buecher.example'],
  ['stra\u00dfe.example', 'STRA\u1e9eE.example'],
  ['strasse.example'],
  ['ka.example', '\u212aA.example', 'k\u200ba.example'],
  ['127.0.0.1'],
  ['127.1'],
];

interface TypedNumber {
  readonly text: string;
  forms(region: 'DE' | 'DK' | null): readonly string[];
}

/** Returns numbers as people write them, with the forms of each. */
function typedNumbers(): TypedNumber[] {
  const written = ['', '49', '45'].flatMap((country) => {
    const nationals =
      country === '45' ? DANISH : country === '49' ? GERMAN.map((each) => each.slice(1)) : [...GERMAN, ...DANISH];
    const prefixes = country === '' ? [''] : [`+${country} `, `00${country} `];
    return nationals.flatMap((national) => prefixes.map((prefix) => ({ country, national, prefix })));
  });
  const endings = [
    ...[' und 9', ' (privat)', ', nach 18 Uhr', ''].map((text) => ({ text, digits: '', extension: '', isTime: false })),
    ...[' 5', ',5', '-5', '/55', ' (5)', ' . 5'].map((text) => ({
      text,
      digits: text.replace(/\D/g, ''),
      extension: '',
      isTime: false,
    })),
    ...EXTENSIONS.flatMap((text) =>
      ['5', '55', '6'].map((extension) => ({
        text: text.replace('N', extension),
        digits: '',
        extension,
        isTime: /kl/i.test(text),
      })),
    ),
  ];
  return written.flatMap(({ country, national, prefix }) =>
    endings.flatMap(({ text, digits: more, extension, isTime }) => {
      const digits = national + more;
      const number = prefix + national.replace(/(..)$/, ' $1');
      return [number + text, `(${number})${text}`].map((text) => ({
        text,
        forms(region) {
          const dialled = (country === '' ? '' : `+${country}`) + digits;
          const e164 = country === '' ? e164In(region, digits) : e164In(country === '49' ? 'DE' : 'DK', digits);
          const suffix = extension === '' ? '' : ` ext ${extension}`;
          const e164Form = isTime && e164?.startsWith('+45') ? e164 : `${e164}${suffix}`;
          return [dialled + suffix, ...(e164 === undefined ? [] : [e164Form])];
        },
      }));
    }),
  );
}

/** National numbers. Some equal another one followed by the digits of an extension. */
const GERMAN = ['0301234567', '03012345675', '030123456755', '03012345676'];
const DANISH = ['33123456', '33123457'];

/** The ways to write an extension N after a number. */
const EXTENSIONS = [
  ...[' ext. N', ' xN', ' (Durchwahl N)', ' - App. N', ';ext=N', ' \u5185\u7ddaN', ' ext N (Anna)', ' kl. N'],
  ...['#N', ' #N', ' - #N', ' (#N)', ';N', ',,N', ' ,, N', ' / N#', ' #N Anna', '; #N (privat)'],
];

/** Returns the E.164 form of a national number, if it has one: German numbers have many lengths, Danish ones have 8 digits. */
function e164In(region: 'DE' | 'DK' | null, digits: string): string | undefined {
  if (region === 'DE') return `+49${digits.replace(/^0/, '')}`;
  return region === 'DK' && digits.length === 8 ? `+45${digits}` : undefined;
}

describe('the listed values', () => {
  const findFault = ({ type, value }: Contact) => captureFault(type, value);

  test('contacts are accepted or refused as listed', () => {
    const compared = [...comparedContacts('same'), ...comparedContacts('different')];
    const valid = [...listedContacts('valid'), ...compared.flatMap(({ contacts }) => contacts)];
    expect(valid.filter((contact) => findFault(contact) !== undefined)).toEqual([]);
    expect(listedContacts('invalid').filter((contact) => findFault(contact) === undefined)).toEqual([]);
  });
});

// @proves leads-5
describe('the keys of a contact', () => {
  test('contact keys never change, because they find open leads', () => {
    expect(contactKeys(email('Ada@Example.org'), null)).toEqual(['bLP1Z-HDzzAqVsriqO_SCQ6ujK8_UQwGy90GqZ97oyU']);
    expect(contactKeys(phone('+49 30 1234567'), null)).toEqual(['1bVM1MkIr1ZMlGLQ6XVTQjkzv-mDSW5_zGmUiERzqNM']);
  });

  // @proves others-2
  test('contact keys stay the same with another release of the phone library', async () => {
    const hashes = Object.fromEntries(
      [null, ...REGIONS].map((region) => {
        const keys = numbersFor(region).flatMap((number) => contactKeys(phone(number), region));
        return [region ?? 'none', hash('sha256', keys.join('\n'), 'base64url')];
      }),
    );

    // A number whose form changes can get a second open lead. Name such numbers in the changelog, or keep the old library.
    await expect(`${JSON.stringify(hashes, null, 2)}\n`).toMatchFileSnapshot('../contacts/forms.json');
  });

  test('contact keys can be computed for any text', () => {
    for (const text of [
      ';phone-context=',
      '030;phone-context=;;',
      ';isub=1',
      '+++',
      '000',
      'x',
      '\u30fc',
      '\ud83d',
      '',
    ]) {
      for (const region of ['DE', null] as const) expect(contactKeys(phone(text), region).length).toBeGreaterThan(0);
      expect(contactKeys(email(text), null).length).toBeGreaterThan(0);
    }
  });
});

test('a region is a code of ISO 3166, or XK', () => {
  for (const code of ['DE', 'US', 'XK']) expect(isRegionCode(code), code).toBe(true);
  for (const code of ['', 'de', 'XX', 'DEU', '49', 'DE ', '__proto__']) expect(isRegionCode(code), code).toBe(false);
});

/** Returns about eighty numbers: a region's example, numbers close to it, and examples of other regions. */
function numbersFor(region: CountryCode | null): string[] {
  const { national, e164 } = findExample(region ?? 'DE');
  const lengths = [-3, -2, -1, 1, 2].map((more) => (more < 0 ? national.slice(0, more) : national + '5'.repeat(more)));
  const leading = Array.from({ length: 10 }, (_, digit) => national.replace(/\d/, String(digit)));
  const others = REGIONS.filter((_, index) => index % 4 === 0).map((other) => findExample(other).e164);
  return [national, e164, ...lengths, ...leading, ...others];
}
