import { METHODS } from 'node:http';
import fc, { type Arbitrary } from 'fast-check';
import { HARD_TEXTS } from '../support/builders.ts';
import { LEADS } from '../support/service.ts';

/** What is known of the key in a request. */
export type KeyState =
  | 'good'
  | 'read-only'
  | 'create-only'
  | 'suspended'
  | 'demoted'
  | 'foreign'
  | 'dead'
  | 'unknown'
  | 'malformed'
  | 'none';

/** The data of a service under test to which requests refer. */
export interface World {
  /** The secrets of each state that has any; several for `dead`. */
  readonly secrets: Readonly<Record<Exclude<KeyState, 'malformed' | 'none'>, readonly string[]>>;
  /** The key of a separate studio, for requests that a server may interpret in an unknown way. */
  readonly scratchSecret: string;
  /** A usable source, and others: disabled, of another studio, nonexistent. */
  readonly sourceId: string;
  readonly otherSourceIds: readonly string[];
  /** Leads of the good key's studio, and of another one. */
  readonly leadIds: readonly string[];
  readonly foreignLeadIds: readonly string[];
  /** Cursors of the good key's studio, and of another one. */
  readonly cursors: readonly string[];
  readonly foreignCursors: readonly string[];
}

/** A request as bytes, and what is known of it. */
export interface HostileRequest {
  readonly bytes: Buffer;
  /** `whole`: exactly one request; `cut`: less than one; `unknown`: undetermined. */
  readonly framing: 'whole' | 'cut' | 'unknown';
  readonly key: KeyState;
  /** The id that the response must carry. */
  readonly requestId?: string;
  /** The body of a creation that is valid otherwise, so that the body alone decides the response. */
  readonly capture?: Buffer;
  /** Whether the server may stop reading before the end of the request, and close the connection after its response. */
  readonly isLong?: boolean;
}

type Header = readonly [name: string, value: string];

/** A key, and the header that carries it. */
interface Account {
  readonly key: KeyState;
  readonly authorization: string | undefined;
}

/** A request in parts. Texts have one character per byte. */
interface Parts {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly Header[];
  readonly account: Account;
  readonly requestId: string | undefined;
  readonly body?: Buffer | undefined;
  readonly framing: Framing;
  readonly isDecidedByBody?: boolean;
}

/** How a body is sent: with its length, or in chunks of some sizes, with an extension and a trailer. */
type Framing = 'length' | { readonly sizes: readonly number[]; readonly extension: string; readonly trailer: string };

/** Generates every kind of request that this suite covers. */
export function hostileRequests(world: World): Arbitrary<HostileRequest> {
  const whole = fc.oneof(
    { weight: 48, arbitrary: creations(world) },
    { weight: 12, arbitrary: reads(world) },
    { weight: 14, arbitrary: lists(world) },
    { weight: 10, arbitrary: strays(world) },
    { weight: 3, arbitrary: long(world) },
  );
  const request = whole.map(render);
  return fc.oneof(
    { weight: 82, arbitrary: request },
    { weight: 5, arbitrary: fc.tuple(request, fc.nat()).map(([of, at]) => cut(of, at)) },
    { weight: 11, arbitrary: fc.tuple(whole, damages()).map(([parts, damage]) => damaged(world, parts, damage)) },
    { weight: 2, arbitrary: garbage() },
  );
}

/** Returns the text and the facts of a request, for a report. */
export function describeRequest({ bytes, ...facts }: HostileRequest): string {
  const shown = bytes.length > 3000 ? `${bytes.toString('latin1', 0, 3000)}… (${bytes.length} bytes)` : undefined;
  return `${JSON.stringify(shown ?? bytes.toString('latin1'))} ${JSON.stringify({ ...facts, capture: undefined })}`;
}

// ---- keys ----

const pick = <T>(values: readonly T[]): Arbitrary<T> => fc.constantFrom(...values);

const words = (text: string): string[] => text.split(/\s+/);

function accounts({ secrets }: World): Arbitrary<Account> {
  const inState = (state: keyof World['secrets']) =>
    pick(secrets[state]).map((secret): Account => ({ key: state, authorization: `Bearer ${secret}` }));
  const [secret = ''] = secrets.good;
  const malformed = [
    ...['', 'Bearer', 'Bearer ', secret, `Bearer${secret}`, `Basic ${secret}`, `Bearer ${secret} x`],
    ...[`Bearer ${secret}, Bearer ${secret}`, `Bearer "${secret}"`, `Bearer ${secret.toLowerCase()}`],
    ...[`Bearer ${secret.slice(0, -1)}`, `Bearer ${secret}\xe9`, `Bearer lik_${'A'.repeat(48)}`],
    ...[`Bearer lik_${'\xff'.repeat(48)}`, `Bearer ${'lik_'.repeat(2000)}`],
  ];
  const changed = fc.tuple(fc.nat(secret.length - 1), pick([...'AaZz09-_.~+/= %'])).map(([at, by]) => {
    const other = `${secret.slice(0, at)}${by}${secret.slice(at + 1)}`;
    return { key: other === secret ? 'good' : 'malformed', authorization: `Bearer ${other}` } as const;
  });
  return fc.oneof(
    { weight: 70, arbitrary: inState('good') },
    { weight: 5, arbitrary: fc.constant<Account>({ key: 'none', authorization: undefined }) },
    {
      weight: 5,
      arbitrary: pick(malformed).map((authorization): Account => ({ key: 'malformed', authorization })),
    },
    { weight: 5, arbitrary: changed },
    { weight: 3, arbitrary: inState('unknown') },
    { weight: 3, arbitrary: inState('dead') },
    { weight: 2, arbitrary: inState('read-only') },
    { weight: 2, arbitrary: inState('create-only') },
    { weight: 2, arbitrary: inState('suspended') },
    { weight: 2, arbitrary: inState('demoted') },
    { weight: 1, arbitrary: inState('foreign') },
  );
}

// ---- creations ----

/** A number that is practically unique. */
const serial = fc.noBias(fc.maxSafeNat());

const uuid = serial.map((number) => {
  const digits = number.toString(16).padStart(14, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(11)}-8000-000000000000`;
});

/** So few ids that requests collide on them. */
const SHARED_IDS: readonly string[] = Array.from(
  { length: 200 },
  (_, index) => `0b4c1d6a-9d3e-4a53-8a5f-${index.toString(16).padStart(12, '0')}`,
);

/** Creations that are sent repeatedly. */
const REPEATED = SHARED_IDS.slice(0, 50).map((id) => {
  const idempotencyKey = id.replace('-8a5f-', '-9a5f-');
  const contact = { type: 'email', value: `${idempotencyKey}@example.org` };
  return { idempotencyKey, body: Buffer.from(JSON.stringify({ displayName: 'Again', contact })) };
});

/** Values that are not a hyphenated UUID, or only just one. */
const NEARLY_UUIDS = [
  ...words(`0b4c1d6a9d3e4a538a5f6f1f0f0d7c11 {0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11}
    urn:uuid:0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11 0b4c1d6a-9d3e-0a53-8a5f-6f1f0f0d7c11
    0b4c1d6a-9d3e-9a53-8a5f-6f1f0f0d7c11 0b4c1d6a-9d3e-4a53-7a5f-6f1f0f0d7c11 0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c1
    0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c111 0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c1g
    00000000-0000-0000-0000-000000000001 ffffffff-ffff-ffff-ffff-fffffffffffe retry-1 null 0`),
  ...['', ' ', 'x'.repeat(5000)],
];
const RARE_UUIDS = [
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF',
  '0B4C1D6A-9D3E-4A53-8A5F-6F1F0F0D7C11',
];

function creations(world: World): Arbitrary<Parts> {
  const body = bodies(world);
  const idempotencyKey = fc.oneof(
    { weight: 80, arbitrary: uuid },
    { weight: 12, arbitrary: pick(SHARED_IDS) },
    { weight: 4, arbitrary: pick(RARE_UUIDS) },
  );
  return fc
    .record({
      ...common(world),
      creation: fc.oneof(
        { weight: 19, arbitrary: fc.record({ idempotencyKey, body }) },
        { weight: 1, arbitrary: pick(REPEATED) },
      ),
      oddity: fc.oneof({ weight: 75, arbitrary: fc.constant(undefined) }, { weight: 25, arbitrary: oddities() }),
      framing: framings(),
    })
    .map(({ creation: { idempotencyKey, body }, oddity, ...parts }) => {
      const expected: Header[] = [
        ['Content-Type', 'application/json'],
        ['Idempotency-Key', idempotencyKey],
      ];
      return {
        ...parts,
        body,
        method: 'POST',
        target: LEADS,
        headers: [...parts.headers, ...(oddity === undefined ? expected : oddity(expected))],
        isDecidedByBody: oddity === undefined && parts.headers.length === 0,
      };
    });
}

/** Ways to send headers that differ from those of a regular creation. */
function oddities(): Arbitrary<(expected: readonly Header[]) => readonly Header[]> {
  const mediaType = fc.oneof(
    pick([
      ...words(
        'Application/JSON application/json;charset=utf-16 application/json; application/vnd.api+json text/plain',
      ),
      ...words('application/problem+json text/json application/x-www-form-urlencoded */* ; / json'),
      ...['', 'application/json; charset=utf-8', 'application/json; charset="\xff"', 'application/json, text/html'],
      ...['multipart/form-data; boundary=x', 'application/json\t', `application/json; ${'a=b; '.repeat(1000)}`],
    ]),
    headerText(),
  );
  return fc.oneof(
    mediaType.map((value) => ([, ...rest]: readonly Header[]) => [['Content-Type', value] as const, ...rest]),
    fc.constant(([, ...rest]: readonly Header[]) => rest),
    fc.constant((expected: readonly Header[]) => [...expected, ...expected]),
    fc.constant((expected: readonly Header[]) => [...expected, ['Content-Type', 'text/plain'] as const]),
    fc.constant((expected: readonly Header[]) => expected.slice(0, 1)),
    fc
      .oneof(pick(NEARLY_UUIDS), headerText())
      .map((value) => (expected: readonly Header[]) => [...expected.slice(0, 1), ['Idempotency-Key', value] as const]),
    pick(['gzip', 'br', 'deflate', 'identity', 'gzip, gzip', 'nonsense']).map(
      (value) => (expected: readonly Header[]) => [...expected, ['Content-Encoding', value] as const],
    ),
  );
}

/** Bodies of creations: valid ones, ones with a fault, and texts that are barely JSON. */
function bodies(world: World): Arbitrary<Buffer> {
  const capture = captures(world);
  const json = capture.map((value) => JSON.stringify(value));
  return fc.oneof(
    { weight: 60, arbitrary: json.map((text) => Buffer.from(text)) },
    {
      weight: 15,
      arbitrary: fc.tuple(capture, misshapings()).map(([value, misshape]) => Buffer.from(misshape(value))),
    },
    { weight: 20, arbitrary: fc.tuple(json, spoilings()).map(([text, spoil]) => spoil(text)) },
    { weight: 3, arbitrary: fc.jsonValue({ maxDepth: 4 }).map((value) => Buffer.from(JSON.stringify(value))) },
    { weight: 2, arbitrary: pick(ODD_JSON).map((text) => Buffer.from(text)) },
  );
}

const DEEP = 15_000;

/** Bodies that are another kind of JSON, or not JSON. */
const ODD_JSON = [
  ...['', ' \t\r\n'],
  ...words('null true 0 "" [] {} [{}] {"__proto__":{}} 1e999999 "\\ud800"'),
  '['.repeat(DEEP),
  '['.repeat(DEEP) + ']'.repeat(DEEP),
  `${'{"contact":'.repeat(2500)}1${'}'.repeat(2500)}`,
  `{"displayName":"A","contact":{"type":"email","value":"a@b"},"note":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`,
  `{${Array.from({ length: 2500 }, (_, index) => `"x${index}":0`).join()}}`,
  `{${'"displayName":"A",'.repeat(1500)}"contact":{"type":"email","value":"dup@example.org"}}`,
  '{"displayName":"A","contact":{"__proto__":{"type":"email","value":"a@b"}}}',
  '{"displayName":"A","contact":{"type":"email","value":"a@b"},"constructor":{"prototype":{"x":1}}}',
  `${'9'.repeat(30_000)}`,
  `-${'0'.repeat(30_000)}`,
];

const PERSON_UNITS = ['a', 'é', '😀', '\u0301', '\u202e', '\u{10ffff}', '"', '\\', '\n', '<', '\u2028', '\ufeff'];
const BAD_UNITS = ['\0', '\ud800', '\udc00'];

/** Texts around a bound, of characters that implementations count or read differently. */
const sized = (...sizes: readonly number[]): Arbitrary<string> =>
  fc.tuple(pick(PERSON_UNITS), pick(sizes)).map(([unit, size]) => unit.repeat(size));

function texts(max: number): Arbitrary<string> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.string({ unit: pick(PERSON_UNITS), minLength: 1, maxLength: 8 }) },
    { weight: 3, arbitrary: pick(Object.values(HARD_TEXTS)) },
    { weight: 3, arbitrary: sized(1, max - 1, max) },
    { weight: 2, arbitrary: sized(0, max + 1, 2 * max) },
    { weight: 1, arbitrary: pick(BAD_UNITS).map((unit) => `x${unit}y`) },
  );
}

/** Creations, each property valid or not. */
function captures(world: World): Arbitrary<Record<string, unknown>> {
  const email = fc.oneof(
    { weight: 14, arbitrary: uuid.map((id) => `${id}@example.org`) },
    { weight: 3, arbitrary: pick(SHARED_IDS).map((id) => `${id}@example.org`) },
    { weight: 1, arbitrary: pick([253, 254, 255]).map((size) => `${'a'.repeat(size - 12)}@example.org`) },
    {
      weight: 1,
      arbitrary: pick(['', '@', 'a@', '@b', 'a@b@c', 'a b@c', 'a@b\u0000', 'a@b\u0085', 'ä@ö', '\ud83d@b']),
    },
  );
  const phone = fc.oneof(
    { weight: 6, arbitrary: fc.noBias(fc.integer({ min: 1e9, max: 1e10 })).map((digits) => `+49${digits}`) },
    { weight: 1, arbitrary: pick([4, 5, 64, 65]).map((size) => '1'.repeat(size)) },
    {
      weight: 1,
      arbitrary: pick(['', '12', 'abcde', '1-2-a-b-c', '٠١٢٣٤', '+++++', '12345\0', '𝟎𝟏𝟐𝟑𝟒', '1 2 3 ext. 4']),
    },
  );
  const contact = fc.oneof(
    { weight: 4, arbitrary: email.map((value) => ({ type: 'email', value })) },
    { weight: 1, arbitrary: phone.map((value) => ({ type: 'phone', value })) },
  );
  const sourceId = fc.oneof(
    { weight: 6, arbitrary: pick([world.sourceId, world.sourceId.toUpperCase(), null]) },
    { weight: 2, arbitrary: pick(world.otherSourceIds) },
    { weight: 1, arbitrary: pick(NEARLY_UUIDS) },
  );
  const sometimes = { requiredKeys: ['displayName', 'contact'] as ('displayName' | 'contact')[] };
  return (
    fc
      .tuple(
        fc.record({ displayName: texts(160), contact, sourceId, note: fc.option(texts(2000)) }, sometimes),
        fc.integer({ min: 0, max: 9 }),
      )
      // Most of them are unusual in one respect only.
      .map(([{ displayName, contact, ...more }, kind]) =>
        kind < 6 ? { displayName: 'Ada', contact } : { displayName, contact, ...more },
      )
  );
}

const NAMES = [
  ...words('extra __proto__ constructor toString id stage studioId a/b~1'),
  ...['', 'displayName ', '\ud800'],
];

/** Ways to write a capture with a wrong name, type or number in it. */
function misshapings(): Arbitrary<(capture: Record<string, unknown>) => string> {
  const place = pick(['', 'contact']);
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }).map((json) => JSON.stringify(json)),
    pick(['1e400', '-0', '1'.repeat(400), '[]', '{}', 'null', '""', '{"type":"email"}', '[[[[[[]]]]]]', '0.1e-7']),
  );
  const inserted = fc.tuple(place, fc.oneof(pick(NAMES), fc.string({ maxLength: 10 })), value).map(
    ([at, name, json]) =>
      (capture: Record<string, unknown>) =>
        insert(capture, at, `${JSON.stringify(name)}:${json}`),
  );
  const replaced = fc.tuple(pick(['displayName', 'contact', 'sourceId', 'note']), value).map(
    ([name, json]) =>
      (capture: Record<string, unknown>) =>
        insert({ ...capture, [name]: undefined }, '', `${JSON.stringify(name)}:${json}`),
  );
  const repeated = fc.tuple(pick(['displayName', 'contact', 'sourceId', 'note']), value, fc.boolean()).map(
    ([name, json, last]) =>
      (capture: Record<string, unknown>) =>
        insert(capture, last ? '' : 'front', `${JSON.stringify(name)}:${json}`),
  );
  const missing = pick(['displayName', 'contact']).map(
    (name) => (capture: Record<string, unknown>) => JSON.stringify({ ...capture, [name]: undefined }),
  );
  const contact = fc.tuple(pick(['type', 'value']), value).map(
    ([name, json]) =>
      (capture: Record<string, unknown>) =>
        insert(
          { ...capture, contact: { ...(capture.contact as object), [name]: undefined } },
          'contact',
          `"${name}":${json}`,
        ),
  );
  return fc.oneof(inserted, replaced, repeated, missing, contact);
}

/** Writes a capture with one more property: at its end, at its front, or in its contact. */
function insert(capture: Record<string, unknown>, at: string, property: string): string {
  const text = JSON.stringify(capture);
  if (at === 'front') return text.replace('{', () => `{${property},`);
  if (at === 'contact') return text.replace('"contact":{', () => `"contact":{${property},`).replace(',}', '}');
  return text.replace(/\}$/, () => `${text === '{}' ? '' : ','}${property}}`);
}

/** Ways to corrupt the text of a body. */
function spoilings(): Arbitrary<(text: string) => Buffer> {
  const at = fc.double({ min: 0, max: 1, noNaN: true });
  const bytes = pick(words('ff c0af eda080 e282 f4908080 00 0a 22 5c 7d 2c 5c75 efbbbf')).map((hex) =>
    Buffer.from(hex, 'hex'),
  );
  return fc.oneof(
    fc.tuple(at, bytes).map(([share, piece]) => (text: string) => {
      const whole = Buffer.from(text);
      const index = Math.floor(share * whole.length);
      return Buffer.concat([whole.subarray(0, index), piece, whole.subarray(index)]);
    }),
    at.map((share) => (text: string) => Buffer.from(text).subarray(0, Math.floor(share * text.length))),
    fc.tuple(at, fc.nat(255)).map(([share, byte]) => (text: string) => {
      const whole = Buffer.from(text);
      whole[Math.floor(share * (whole.length - 1))] = byte;
      return whole;
    }),
    pick<(text: string) => Buffer>([
      (text) => Buffer.from(`\ufeff${text}`),
      (text) => Buffer.from(`\ufeff\ufeff${text}`),
      (text) => Buffer.from(text, 'utf16le'),
      (text) => Buffer.from(`\ufeff${text}`, 'utf16le'),
      (text) => Buffer.from(text, 'latin1'),
      (text) => Buffer.from(text + text),
      (text) => Buffer.from(` \r\n\t${text}\r\n `),
      (text) => Buffer.from(`${text}\0`),
      (text) => Buffer.from(text.replaceAll('"', "'")),
      (text) => Buffer.from(text.replace(/\}$/, ',}')),
      (text) => Buffer.from(`/* */${text}`),
      (text) => Buffer.from(text.replace(/[a-z]/g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)),
      (text) => Buffer.from(text.replaceAll(':', ' : ').replaceAll(',', ' , ')),
      (text) => Buffer.from(`[${text}]`),
      (text) => Buffer.from(JSON.stringify(text)),
    ]),
  );
}

// ---- reads, lists, and others ----

function reads(world: World): Arbitrary<Parts> {
  const id = fc.oneof(
    { weight: 4, arbitrary: pick(world.leadIds) },
    { weight: 2, arbitrary: pick(world.leadIds).map((known) => known.toUpperCase()) },
    { weight: 2, arbitrary: pick(world.leadIds).map(encodeAll) },
    { weight: 3, arbitrary: pick(world.foreignLeadIds) },
    { weight: 3, arbitrary: uuid },
    { weight: 2, arbitrary: pick(RARE_UUIDS) },
    { weight: 3, arbitrary: pick(NEARLY_UUIDS).map(encodeURIComponent) },
    { weight: 3, arbitrary: fc.tuple(pick(world.leadIds), targetPieces()).map(([known, piece]) => known + piece) },
    { weight: 2, arbitrary: targetPieces() },
  );
  return fc
    .record({ ...common(world), id, body: maybeBody(), framing: framings() })
    .map(({ id: leadId, ...parts }) => ({ ...parts, method: 'GET', target: `${LEADS}/${leadId}` }));
}

function lists(world: World): Arbitrary<Parts> {
  const cursor = fc.oneof(
    { weight: 4, arbitrary: pick(world.cursors) },
    { weight: 2, arbitrary: pick(world.foreignCursors) },
    { weight: 4, arbitrary: fc.tuple(pick(world.cursors), fc.nat(), pick([...'AaZz09-_=.%'])).map(changeAt) },
    { weight: 1, arbitrary: fc.tuple(pick(world.cursors), fc.nat(44)).map(([known, at]) => known.slice(0, at)) },
    { weight: 1, arbitrary: pick(world.cursors).map((known) => known + known) },
    { weight: 1, arbitrary: pick(world.cursors).map(encodeAll) },
    { weight: 1, arbitrary: fc.base64String({ maxLength: 60 }).map(encodeURIComponent) },
    { weight: 1, arbitrary: pick([43, 44, 511, 512, 513, 9000]).map((size) => 'A'.repeat(size)) },
    { weight: 1, arbitrary: targetPieces() },
  );
  const limit = fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 1, max: 100 }).map(String) },
    { weight: 1, arbitrary: fc.integer({ min: -2, max: 102 }).map(String) },
    {
      weight: 2,
      arbitrary: pick(['', '0', '00', '007', '100', '101', '1e1', '0x1', '1.0', '%31', '+1', '1%00', 'NaN', '٣']),
    },
    { weight: 1, arbitrary: targetPieces() },
  );
  const parameter = fc.oneof(
    { weight: 5, arbitrary: limit.map((value) => `limit=${value}`) },
    { weight: 5, arbitrary: cursor.map((value) => `cursor=${value}`) },
    {
      weight: 1,
      arbitrary: pick(['x', '=', '&', 'limit[]=1', 'limit[a]=1', '__proto__=x', 'constructor.prototype=1', 'Limit=0']),
    },
    { weight: 1, arbitrary: targetPieces() },
  );
  return fc
    .record({ ...common(world), query: fc.array(parameter, { maxLength: 3 }), body: maybeBody(), framing: framings() })
    .map(({ query, ...parts }) => ({
      ...parts,
      method: 'GET',
      // A target is sent as bytes.
      target: asBytes(LEADS + (query.length > 0 ? `?${query.join('&')}` : '')),
    }));
}

const changeAt = ([text, index, by]: [string, number, string]) => {
  const at = index % text.length;
  return text.slice(0, at) + by + text.slice(at + 1);
};

const encodeAll = (text: string) => [...text].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
const asBytes = (text: string) => Buffer.from(text).toString('latin1');

/** Parts of a target that routers, decoders and proxies are known to interpret differently. */
const PIECES = [
  ...words(String.raw`/ // /. /.. /./ /../ /../../healthz %2f %2F..%2F %2e%2e %252e %00 % %z %zz %4 %c0%af %ed%a0%80 %ff
    %0d%0aX-Injected:%20x %C3%BC %E2%80%AE %u0041 ; ;a=b \ %5c ? ?? # & = + %20 ü ＠ * :id {id} <script> " | ^ '
    __proto__ constructor ~ .json @example.org`),
  ...['\u202e', '`', 'x'.repeat(300), 'x'.repeat(9000), '%61'.repeat(2000), '/a'.repeat(2000)],
];

const targetPieces = (): Arbitrary<string> =>
  fc.oneof(
    { weight: 5, arbitrary: pick(PIECES) },
    { weight: 1, arbitrary: fc.string({ unit: pick(PERSON_UNITS), maxLength: 6 }).map(encodeURIComponent) },
    { weight: 1, arbitrary: fc.string({ maxLength: 6 }).map((text) => text.replaceAll(' ', '')) },
  );

/** Methods and targets, most of which do not exist. */
function strays(world: World): Arbitrary<Parts> {
  const base = pick([LEADS, `${LEADS}/${world.leadIds[0]}`, ...words('/healthz /readyz / /v1 /v1/integrations *')]);
  const target = fc.oneof(
    { weight: 3, arbitrary: base },
    {
      weight: 4,
      arbitrary: fc.tuple(base, fc.nat(), targetPieces()).map(([path, index, piece]) => {
        const at = index % (path.length + 1);
        return path.slice(0, at) + piece + path.slice(at);
      }),
    },
    { weight: 1, arbitrary: fc.tuple(base, fc.nat()).map(([path, index]) => path.slice(0, index % path.length)) },
    { weight: 1, arbitrary: fc.tuple(base, fc.nat(), fc.constant('%')).map(([path, at]) => encodeOne(path, at)) },
    { weight: 1, arbitrary: base.map((path) => path.toUpperCase()) },
    { weight: 1, arbitrary: base.map((path) => path + path) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(
          pick(['http://', 'https://', 'HTTP://', 'ftp://', '//', 'http:', 'http:///']),
          pick(['a', 'a:1', 'u:p@a', '[::1]', '', '?']),
          base,
        )
        .map((pieces) => pieces.join('')),
    },
    { weight: 1, arbitrary: fc.webUrl() },
  );
  const method = fc.oneof(
    { weight: 6, arbitrary: pick(METHODS.filter((name) => name !== 'CONNECT')) },
    { weight: 2, arbitrary: pick(['GET', 'POST', 'HEAD', 'OPTIONS', 'DELETE']) },
    {
      weight: 1,
      arbitrary: pick(['get', 'Get', 'FROB', 'GETT', 'G', '', 'CONNECT', '__proto__', 'GET\t', 'X'.repeat(5000)]),
    },
  );
  return fc
    .record({ ...common(world), method, target, body: maybeBody(), framing: framings() })
    .map((parts) => ({ ...parts, target: asBytes(parts.target) }));
}

const encodeOne = (path: string, index: number) => {
  const at = index % path.length;
  return `${path.slice(0, at)}%${path.charCodeAt(at).toString(16)}${path.slice(at + 1)}`;
};

/** Requests at and beyond the limits of what the server reads. */
function long(world: World): Arbitrary<Parts> {
  const valid = (id: string, size: number) => {
    const text = JSON.stringify({ displayName: 'Ada', contact: { type: 'email', value: `${id}@example.org` } });
    return Buffer.from(text.padEnd(size));
  };
  const body = fc
    .record({
      ...common(world),
      id: uuid,
      size: pick([32_767, 32_768, 32_769, 40_000, 65_536, 200_000]),
      framing: framings(),
    })
    .map(({ id, size, ...parts }) => ({
      ...parts,
      method: 'POST',
      target: LEADS,
      headers: [...parts.headers, ['Content-Type', 'application/json'] as const, ['Idempotency-Key', id] as const],
      body: valid(id, size),
    }));
  const header = fc
    .record({
      ...common(world),
      size: pick([8000, 12_000, 16_000, 16_384, 20_000, 100_000]),
      many: fc.boolean(),
      framing: framings(),
    })
    .map(({ size, many, ...parts }) => ({
      ...parts,
      method: 'GET',
      target: LEADS,
      headers: many
        ? [...parts.headers, ...Array.from({ length: size / 8 }, (_, index) => [`X${index}`, 'x'] as const)]
        : [...parts.headers, ['X-Long', 'x'.repeat(size)] as const],
    }));
  const target = fc
    .record({
      ...common(world),
      size: pick([8000, 16_000, 17_000, 70_000]),
      piece: pick(['/x', '?x', '&x=y', '%61']),
      framing: framings(),
    })
    .map(({ size, piece, ...parts }) => ({
      ...parts,
      method: 'GET',
      target: LEADS + piece.repeat(size / piece.length),
    }));
  return fc.oneof(body, header, target);
}

// ---- what all have in common ----

function common(world: World) {
  return {
    account: accounts(world),
    requestId: fc.oneof(
      { weight: 9, arbitrary: serial.map((number) => `Request-${number}_.` as string | undefined) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    ),
    headers: fc.oneof(
      { weight: 80, arbitrary: fc.constant([] as Header[]) },
      { weight: 20, arbitrary: fc.array(strangeHeaders(), { minLength: 1, maxLength: 4 }) },
    ),
  };
}

/** A text that is permitted in a header; one character per byte. */
function headerText(): Arbitrary<string> {
  const byte = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0x20, max: 0x7e }) },
    { weight: 1, arbitrary: fc.integer({ min: 0x80, max: 0xff }) },
    { weight: 1, arbitrary: fc.constant(0x09) },
  );
  return fc.array(byte, { maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
}

function strangeHeaders(): Arbitrary<Header> {
  const known: Readonly<Record<string, readonly string[]>> = {
    Host: ['other.example.test', '', 'a b', '[::1', '127.0.0.1:99999', 'a'.repeat(3000), '\xff', '..', 'x@y', '/?#'],
    Expect: ['100-continue', '100-Continue', '100-continue, x', 'x', ''],
    Connection: ['keep-alive', 'close', 'Upgrade', 'Authorization, Host', 'nonsense', '', 'close, keep-alive'],
    Upgrade: ['h2c', 'websocket', 'TLS/1.2', ''],
    'Content-Encoding': ['gzip', 'br'],
    TE: ['trailers', 'chunked', 'gzip;q=2'],
    Trailer: ['Authorization', 'Content-Length'],
    'X-Request-Id': ['', 'two words', 'x'.repeat(129), 'a,b', '\xfc', '<script>'],
    'X-Http-Method-Override': ['DELETE', 'POST'],
    'X-Forwarded-For': ['127.0.0.1', `${'1.1.1.1, '.repeat(500)}`, '\xff'],
    'X-Forwarded-Host': ['other.example.test'],
    Forwarded: ['for=_x;host=other;proto=https', '"'],
    'X-Original-Url': ['/healthz'],
    Cookie: ['a=b', `${'a=b; '.repeat(1000)}`, '\xff'],
    Origin: ['null', 'https://page.example.test'],
    'Access-Control-Request-Method': ['POST'],
    Accept: ['text/html', '*/*;q=0', 'nonsense', ''],
    'Accept-Encoding': ['gzip, br', 'identity;q=0, *;q=0'],
    'Accept-Version': ['2.0.0', '*'],
    'If-None-Match': ['*', '"x"'],
    'If-Modified-Since': ['Thu, 01 Jan 1970 00:00:00 GMT', 'never'],
    Range: ['bytes=0-0', 'bytes=-1', 'nonsense'],
    'Proxy-Authorization': ['Bearer x'],
    'Max-Forwards': ['0'],
    Date: ['yesterday'],
    __proto__: ['x'],
    constructor: ['x'],
    hasOwnProperty: ['x'],
    authorizatio: ['x'],
    "!#$%&'*+-.^_`|~": ['x'],
  };
  const names = Object.keys(known);
  return fc.oneof(
    {
      weight: 5,
      arbitrary: pick(names).chain((name) => pick(known[name] ?? []).map((value): Header => [name, value])),
    },
    { weight: 1, arbitrary: fc.tuple(pick(names), headerText()) },
    {
      weight: 1,
      arbitrary: fc.tuple(
        fc.stringMatching(/^[A-Za-z-]{1,12}$/).map((name) => `X-${name}`),
        headerText(),
      ),
    },
  );
}

const maybeBody = (): Arbitrary<Buffer | undefined> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constant(undefined) },
    {
      weight: 1,
      arbitrary: pick(['{', '{}', 'GET / HTTP/1.1\r\n\r\n', '0\r\n\r\n', '\0', '']).map((text) => Buffer.from(text)),
    },
  );

function framings(): Arbitrary<Framing> {
  const chunks = fc.record({
    sizes: fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 4 }),
    extension: fc.oneof(
      { weight: 3, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: pick([';a', ';a=b', ';a="b"']) },
    ),
    trailer: fc.oneof(
      { weight: 3, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: pick(['X-Request-Id: trailer\r\n', 'Authorization: Bearer x\r\n', 'X: y\r\nZ: \r\n']) },
    ),
  });
  return fc.oneof({ weight: 85, arbitrary: fc.constant('length' as const) }, { weight: 15, arbitrary: chunks });
}

// ---- to bytes ----

function render(parts: Parts): HostileRequest {
  const { method, target, requestId, body, framing, isDecidedByBody } = parts;
  const { key, authorization } = parts.account;
  const isChunked = framing !== 'length' && body !== undefined;
  // The first Host and the first id count; further ones make them ambiguous.
  const headers: Header[] = [
    ...(parts.headers.some(([name]) => name === 'Host') ? [] : [['Host', 'leads.example.test'] as const]),
    ...(authorization === undefined ? [] : [['Authorization', authorization] as const]),
    ...(requestId === undefined ? [] : [['X-Request-Id', requestId] as const]),
    ...parts.headers,
    ...(isChunked ? [['Transfer-Encoding', 'chunked'] as const] : []),
    ...(body && !isChunked ? [['Content-Length', String(body.length)] as const] : []),
  ];
  const head = `${method} ${target} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
  const bytes = Buffer.concat([
    Buffer.from(head, 'latin1'),
    body === undefined ? Buffer.alloc(0) : isChunked ? inChunks(body, framing) : body,
  ]);
  const named = headers.filter(([name]) => name.toLowerCase() === 'x-request-id');
  return {
    bytes,
    framing: 'whole',
    key,
    ...(requestId !== undefined && named.length === 1 && { requestId }),
    ...(isDecidedByBody && key === 'good' && body && { capture: body }),
    ...(bytes.length > 16_000 && { isLong: true }),
  };
}

function inChunks(body: Buffer, { sizes, extension, trailer }: Exclude<Framing, 'length'>): Buffer {
  const pieces: Buffer[] = [];
  let rest = body;
  for (const size of [...sizes, body.length]) {
    const piece = rest.subarray(0, size);
    if (piece.length === 0) break;
    pieces.push(Buffer.from(`${piece.length.toString(16)}${extension}\r\n`), piece, Buffer.from('\r\n'));
    rest = rest.subarray(size);
  }
  return Buffer.concat([...pieces, Buffer.from(`0\r\n${trailer}\r\n`)]);
}

/** The beginning of a request. */
function cut({ bytes, key }: HostileRequest, at: number): HostileRequest {
  return { bytes: bytes.subarray(0, at % bytes.length), framing: 'cut', key, isLong: bytes.length > 16_000 };
}

// ---- damage ----

type Damage = (bytes: Buffer) => Buffer;

/** Ways to corrupt bytes, and deliberate violations of HTTP. */
function damages(): Arbitrary<Damage> {
  const at = fc.double({ min: 0, max: 1, noNaN: true });
  const index = (bytes: Buffer, share: number) => Math.floor(share * bytes.length);
  const splice = (bytes: Buffer, from: number, to: number, by: Buffer) =>
    Buffer.concat([bytes.subarray(0, from), by, bytes.subarray(to)]);
  const piece = fc.oneof(
    pick([
      ...['\r\n', '\n', '\r', '\r\n\r\n', ' ', '\t', '\0', '\x0b', '\x7f', '\x85', '0\r\n\r\n'],
      ...words(': , ; HTTP/1.1 %'),
    ]).map((text) => Buffer.from(text, 'latin1')),
    fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
  );
  const header = pick([
    'Content-Length: 0',
    'Content-Length: 5',
    'Content-Length: +5',
    'Content-Length: 5, 5',
    'Content-Length: 99999999999999999999',
    'Content-Length : 5',
    'Content-Length:',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: identity, chunked',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding : chunked',
    'Transfer-Encoding:\r\n chunked',
    'X: a\r\n folded',
    'X: a\rb',
    'X: a\nb',
    'X: \0',
    ': nameless',
    'colonless',
    ' Host: leading',
    'Host: second.example.test',
    'Authorization: Bearer second',
  ]);
  const one = fc.oneof(
    fc.tuple(at, piece).map(
      ([share, by]): Damage =>
        (bytes) =>
          splice(bytes, index(bytes, share), index(bytes, share), by),
    ),
    fc.tuple(at, piece).map(
      ([share, by]): Damage =>
        (bytes) =>
          splice(bytes, index(bytes, share), index(bytes, share) + by.length, by),
    ),
    fc.tuple(at, fc.integer({ min: 1, max: 40 })).map(
      ([share, count]): Damage =>
        (bytes) =>
          splice(bytes, index(bytes, share), index(bytes, share) + count, Buffer.alloc(0)),
    ),
    fc.tuple(at, fc.integer({ min: 1, max: 40 })).map(
      ([share, count]): Damage =>
        (bytes) => {
          const from = index(bytes, share);
          return splice(bytes, from, from, bytes.subarray(from, from + count));
        },
    ),
    header.map(
      (line): Damage =>
        (bytes) => {
          const end = bytes.indexOf('\r\n') + 2;
          return splice(bytes, end, end, Buffer.from(`${line}\r\n`, 'latin1'));
        },
    ),
    pick(['HTTP/1.0', 'HTTP/0.9', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/3.7', 'http/1.1', 'HTTP/1.1 x', '']).map(
      (version): Damage =>
        (bytes) =>
          Buffer.from(
            bytes.toString('latin1').replace('HTTP/1.1', () => version),
            'latin1',
          ),
    ),
    fc.constant<Damage>((bytes) => Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')),
    fc.constant<Damage>((bytes) => Buffer.from(bytes.toString('latin1').replace(/^Host.*\r\n/m, ''), 'latin1')),
  );
  return fc.array(one, { minLength: 1, maxLength: 2 }).map(
    (several): Damage =>
      (bytes) =>
        several.reduce((harmed, damage) => damage(harmed), bytes),
  );
}

function damaged(world: World, parts: Parts, damage: Damage): HostileRequest {
  // Its effects are confined to a separate studio.
  const { key } = parts.account;
  const opens = key === 'good' || key === 'read-only' || key === 'create-only' || key === 'foreign';
  const account: Account = opens ? { key: 'good', authorization: `Bearer ${world.scratchSecret}` } : parts.account;
  const { bytes } = render({ ...parts, account });
  return doubtful(damage(bytes), account.key);
}

/** Completes the request for a server that waits for the rest of a head, or of a short body; other servers may skip empty lines. */
const LINE_ENDS = Buffer.from('\r\n'.repeat(50));

const doubtful = (bytes: Buffer, key: KeyState): HostileRequest => ({
  bytes: Buffer.concat([bytes, LINE_ENDS]),
  framing: 'unknown',
  key,
});

/** Input that is not HTTP at all. */
function garbage(): Arbitrary<HostileRequest> {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((values) => Buffer.from(values)),
    pick([
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      'EHLO example.org\r\n',
      '\r\n'.repeat(1000),
      'GET / HTTP/1.1',
      `GET ${LEADS}\r\n\r\n`,
      '*1\r\n$4\r\nPING\r\n',
      '\0'.repeat(1000),
      '<?xml version="1.0"?>\r\n\r\n',
    ]).map((text) => Buffer.from(text, 'latin1')),
  );
  return bytes.map((value) => doubtful(value, 'none'));
}
