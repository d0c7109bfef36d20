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

/** One of several, each with its weight. */
const either = <T>(...choices: readonly (readonly [weight: number, of: Arbitrary<T>])[]): Arbitrary<T> =>
  fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const pick = <T>(values: readonly T[]): Arbitrary<T> => fc.constantFrom(...values);
const only = <T>(value: T): Arbitrary<T> => fc.constant(value);
const words = (text: string): string[] => text.split(/\s+/);

/** A place in a text, as a share of it. */
const somewhere = fc.double({ min: 0, max: 1, noNaN: true });

/** Generates every kind of request that this suite covers. */
export function hostileRequests(world: World): Arbitrary<HostileRequest> {
  const whole = either(
    [48, creations(world)],
    [12, reads(world)],
    [14, lists(world)],
    [10, strays(world)],
    [3, long(world)],
  );
  const request = whole.map(render);
  return either(
    [82, request],
    [5, fc.tuple(request, fc.nat()).map(([of, at]) => cut(of, at))],
    [11, fc.tuple(whole, damages()).map(([parts, damage]) => damaged(world, parts, damage))],
    [2, garbage()],
  );
}

/** Returns the text and the facts of a request, for a report. */
export function describeRequest({ bytes, ...facts }: HostileRequest): string {
  const shown = bytes.length > 3000 ? `${bytes.toString('latin1', 0, 3000)}… (${bytes.length} bytes)` : undefined;
  return `${JSON.stringify(shown ?? bytes.toString('latin1'))} ${JSON.stringify({ ...facts, capture: undefined })}`;
}

// ---- keys ----

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
  const changed = fc.tuple(fc.nat(secret.length - 1), pick([...'AaZz09-_.~+/= %'])).map(([at, by]): Account => {
    const other = `${secret.slice(0, at)}${by}${secret.slice(at + 1)}`;
    return { key: other === secret ? 'good' : 'malformed', authorization: `Bearer ${other}` };
  });
  const others = ['unknown', 'dead', 'read-only', 'create-only', 'suspended', 'demoted', 'foreign'] as const;
  return either(
    [70, inState('good')],
    [5, only<Account>({ key: 'none', authorization: undefined })],
    [5, pick(malformed).map((authorization): Account => ({ key: 'malformed', authorization }))],
    [5, changed],
    ...others.map((state) => [2, inState(state)] as const),
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
    0b4c1d6a-9d3e-4a53-7a5f-6f1f0f0d7c11 0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c1
    0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c1g 00000000-0000-0000-0000-000000000001
    ffffffff-ffff-ffff-ffff-fffffffffffe retry-1 null 0`),
  ...['', ' ', 'x'.repeat(5000)],
];
const RARE_UUIDS = words(`00000000-0000-0000-0000-000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff
  FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF 0B4C1D6A-9D3E-4A53-8A5F-6F1F0F0D7C11`);

function creations(world: World): Arbitrary<Parts> {
  const idempotencyKey = either([80, uuid], [12, pick(SHARED_IDS)], [4, pick(RARE_UUIDS)]);
  return fc
    .record({
      ...common(world),
      creation: either([19, fc.record({ idempotencyKey, body: bodies(world) })], [1, pick(REPEATED)]),
      oddity: either<Oddity | undefined>([75, only(undefined)], [25, oddities()]),
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

/** A way to send headers that differ from those of a regular creation. */
type Oddity = (expected: readonly Header[]) => readonly Header[];

function oddities(): Arbitrary<Oddity> {
  const mediaType = fc.oneof(
    pick([
      ...words(
        'Application/JSON application/json;charset=utf-16 application/json; application/problem+json text/plain',
      ),
      ...words('application/x-www-form-urlencoded */* ; /'),
      ...['', 'application/json; charset="\xff"', 'application/json, text/html', 'application/json\t'],
    ]),
    headerText(),
  );
  const key = fc.oneof(pick(NEARLY_UUIDS), headerText());
  const encoding = pick(words('gzip br deflate identity gzip,gzip nonsense'));
  return fc.oneof(
    mediaType.map(
      (value): Oddity =>
        ([, ...rest]) => [['Content-Type', value], ...rest],
    ),
    key.map(
      (value): Oddity =>
        ([first]) => [first as Header, ['Idempotency-Key', value]],
    ),
    encoding.map(
      (value): Oddity =>
        (expected) => [...expected, ['Content-Encoding', value]],
    ),
    pick<Oddity>([
      ([, ...rest]) => rest,
      (expected) => expected.slice(0, 1),
      (expected) => [...expected, ...expected],
      (expected) => [...expected, ['Content-Type', 'text/plain']],
    ]),
  );
}

/** Bodies of creations: valid ones, ones with a fault, and texts that are barely JSON. */
function bodies(world: World): Arbitrary<Buffer> {
  const capture = captures(world);
  const json = capture.map((value) => JSON.stringify(value));
  return either(
    [60, json.map((text) => Buffer.from(text))],
    [15, fc.tuple(capture, misshapings()).map(([value, misshape]) => Buffer.from(misshape(value)))],
    [20, fc.tuple(json, spoilings()).map(([text, spoil]) => spoil(text))],
    [3, fc.jsonValue({ maxDepth: 4 }).map((value) => Buffer.from(JSON.stringify(value)))],
    [2, pick(ODD_JSON).map((text) => Buffer.from(text))],
  );
}

const DEEP = 15_000;

/** Bodies that are another kind of JSON, or not JSON. */
const ODD_JSON = [
  ...['', ' \t\r\n'],
  ...words('null true 0 "" [] {} [{}] {"__proto__":{}} 1e999999 "\\ud800"'),
  '['.repeat(DEEP),
  `{"displayName":"A","contact":{"type":"email","value":"a@b"},"note":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`,
  `{${Array.from({ length: 2500 }, (_, index) => `"x${index}":0`).join()}}`,
  `{${'"displayName":"A",'.repeat(1500)}"contact":{"type":"email","value":"dup@example.org"}}`,
  '{"displayName":"A","contact":{"__proto__":{"type":"email","value":"a@b"}}}',
  '{"displayName":"A","contact":{"type":"email","value":"a@b"},"constructor":{"prototype":{"x":1}}}',
  '9'.repeat(30_000),
];

const PERSON_UNITS = ['a', 'é', '😀', '\u0301', '\u202e', '\u{10ffff}', '"', '\\', '\n', '<', '\u2028', '\ufeff'];
const BAD_UNITS = ['\0', '\ud800', '\udc00'];

/** Texts around a bound, of characters that implementations count or read differently. */
const sized = (...sizes: readonly number[]): Arbitrary<string> =>
  fc.tuple(pick(PERSON_UNITS), pick(sizes)).map(([unit, size]) => unit.repeat(size));

const texts = (max: number): Arbitrary<string> =>
  either(
    [8, fc.string({ unit: pick(PERSON_UNITS), minLength: 1, maxLength: 8 })],
    [3, pick(Object.values(HARD_TEXTS))],
    [3, sized(1, max - 1, max)],
    [2, sized(0, max + 1, 2 * max)],
    [1, pick(BAD_UNITS).map((unit) => `x${unit}y`)],
  );

type Capture = Record<string, unknown>;

/** Creations, each property valid or not. */
function captures(world: World): Arbitrary<Capture> {
  const email = either(
    [14, uuid.map((id) => `${id}@example.org`)],
    [3, pick(SHARED_IDS).map((id) => `${id}@example.org`)],
    [1, pick([253, 254, 255]).map((size) => `${'a'.repeat(size - 12)}@example.org`)],
    [1, pick(['', '@', 'a@', '@b', 'a@b@c', 'a b@c', 'a@b\u0000', 'a@b\u0085', 'ä@ö', '\ud83d@b'])],
  );
  const phone = either(
    [6, fc.noBias(fc.integer({ min: 1e9, max: 1e10 })).map((digits) => `+49${digits}`)],
    [1, pick([4, 5, 64, 65]).map((size) => '1'.repeat(size))],
    [1, pick(['', '12', 'abcde', '1-2-a-b-c', '٠١٢٣٤', '+++++', '12345\0', '𝟎𝟏𝟐𝟑𝟒', '1 2 3 ext. 4'])],
  );
  const contact = either(
    [4, email.map((value) => ({ type: 'email', value }))],
    [1, phone.map((value) => ({ type: 'phone', value }))],
  );
  const sourceId = either(
    [6, pick([world.sourceId, world.sourceId.toUpperCase(), null])],
    [2, pick<string | null>(world.otherSourceIds)],
    [1, pick<string | null>(NEARLY_UUIDS)],
  );
  const sometimes = { requiredKeys: ['displayName', 'contact'] as ('displayName' | 'contact')[] };
  const all = fc.record({ displayName: texts(160), contact, sourceId, note: fc.option(texts(2000)) }, sometimes);
  // Most of them are unusual in one respect only.
  return either<Capture>([6, contact.map((value) => ({ displayName: 'Ada', contact: value }))], [4, all]);
}

/** Ways to write a capture with a wrong name, type or number in it, or without a property. */
function misshapings(): Arbitrary<(capture: Capture) => string> {
  const name = fc.oneof(
    pick(words('displayName contact sourceId note type value')),
    pick([...words('extra __proto__ constructor id stage a/b~1'), '', 'displayName ', '\ud800']),
    fc.string({ maxLength: 10 }),
  );
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }).map((json) => JSON.stringify(json)),
    pick(['1e400', '-0', '1'.repeat(400), '[]', '{}', 'null', '""', '{"type":"email"}', '[[[[[[]]]]]]', '0.1e-7']),
  );
  const place = pick(['end', 'front', 'contact'] as const);
  return either<(capture: Capture) => string>(
    [5, fc.tuple(place, name, value, fc.boolean()).map((of) => (capture) => withProperty(capture, ...of))],
    [1, pick(['displayName', 'contact']).map((missing) => (capture) => without(capture, missing))],
  );
}

const without = (capture: Capture, name: string) => JSON.stringify({ ...capture, [name]: undefined });

/** Writes a capture with one more property at a place, instead of one of that name or beside it. */
function withProperty(
  capture: Capture,
  at: 'end' | 'front' | 'contact',
  name: string,
  json: string,
  replaces: boolean,
) {
  const property = `${JSON.stringify(name)}:${json}`;
  if (at === 'contact') {
    const contact = without(capture.contact as Capture, replaces ? name : '');
    const inside = contact === '{}' ? `{${property}}` : contact.replace(/\}$/, () => `,${property}}`);
    return withProperty({ ...capture, contact: undefined }, 'end', 'contact', inside, true);
  }
  const text = without(capture, replaces ? name : '');
  if (text === '{}') return `{${property}}`;
  return at === 'front' ? text.replace('{', () => `{${property},`) : text.replace(/\}$/, () => `,${property}}`);
}

/** Ways to corrupt the text of a body. */
function spoilings(): Arbitrary<(text: string) => Buffer> {
  const bytes = pick(words('ff c0af eda080 e282 f4908080 00 0a 22 5c 7d 2c 5c75 efbbbf')).map((hex) =>
    Buffer.from(hex, 'hex'),
  );
  return fc.oneof(
    fc.tuple(somewhere, fc.boolean(), bytes).map(([share, replaces, by]) => (text: string) => {
      return spliced(Buffer.from(text), share, replaces ? by.length : 0, by);
    }),
    somewhere.map((share) => (text: string) => Buffer.from(text).subarray(0, Math.floor(share * text.length))),
    pick<(text: string) => Buffer>([
      (text) => Buffer.from(`\ufeff${text}`),
      (text) => Buffer.from(`\ufeff${text}`, 'utf16le'),
      (text) => Buffer.from(text, 'latin1'),
      (text) => Buffer.from(text + text),
      (text) => Buffer.from(` \r\n\t${text}\r\n `),
      (text) => Buffer.from(`${text}\0`),
      (text) => Buffer.from(text.replaceAll('"', "'")),
      (text) => Buffer.from(text.replace(/\}$/, ',}')),
      (text) => Buffer.from(`/* */${text}`),
      (text) => Buffer.from(text.replace(/[a-z]/g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)),
      (text) => Buffer.from(`[${text}]`),
      (text) => Buffer.from(JSON.stringify(text)),
    ]),
  );
}

/** Replaces bytes at a place. */
function spliced(whole: Buffer, share: number, count: number, by: Buffer): Buffer {
  const at = Math.floor(share * whole.length);
  return Buffer.concat([whole.subarray(0, at), by, whole.subarray(at + count)]);
}

// ---- reads, lists, and others ----

function reads(world: World): Arbitrary<Parts> {
  const known = pick(world.leadIds);
  const id = either(
    [4, known],
    [2, known.map((each) => each.toUpperCase())],
    [2, known.map(encodeAll)],
    [3, pick(world.foreignLeadIds)],
    [5, fc.oneof(uuid, pick(RARE_UUIDS))],
    [3, pick(NEARLY_UUIDS).map(encodeURIComponent)],
    [5, fc.tuple(fc.oneof(known, only('')), targetPieces()).map((pieces) => pieces.join(''))],
  );
  return fc
    .record({ ...common(world), id, body: maybeBody() })
    .map(({ id: leadId, ...parts }) => ({ ...parts, method: 'GET', target: `${LEADS}/${leadId}` }));
}

function lists(world: World): Arbitrary<Parts> {
  const known = pick(world.cursors);
  const cursor = either(
    [4, known],
    [2, pick(world.foreignCursors)],
    [4, fc.tuple(known, somewhere, pick([...'AaZz09-_=.%'])).map(([text, at, by]) => changedAt(text, at, by))],
    [1, fc.tuple(known, fc.nat(44)).map(([text, at]) => text.slice(0, at))],
    [1, known.map((text) => text + text)],
    [1, known.map(encodeAll)],
    [1, pick([43, 44, 511, 512, 513, 9000]).map((size) => 'A'.repeat(size))],
    [1, targetPieces()],
  );
  const limit = either(
    [5, fc.integer({ min: -2, max: 102 }).map(String)],
    [2, pick(['', '0', '00', '007', '100', '101', '1e1', '0x1', '1.0', '%31', '+1', '1%00', 'NaN', '٣'])],
    [1, targetPieces()],
  );
  const parameter = either(
    [5, limit.map((value) => `limit=${value}`)],
    [5, cursor.map((value) => `cursor=${value}`)],
    [1, pick(['x', '=', '&', 'limit[]=1', '__proto__=x', 'constructor.prototype=1', 'Limit=0'])],
    [1, targetPieces()],
  );
  return fc
    .record({ ...common(world), query: fc.array(parameter, { maxLength: 3 }), body: maybeBody() })
    .map(({ query, ...parts }) => ({
      ...parts,
      method: 'GET',
      // A target is sent as bytes.
      target: asBytes(LEADS + (query.length > 0 ? `?${query.join('&')}` : '')),
    }));
}

/** Puts a text in place of one character. */
function changedAt(text: string, share: number, by: string): string {
  const at = Math.floor(share * text.length);
  return text.slice(0, at) + by + text.slice(at + 1);
}

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
  either(
    [5, pick(PIECES)],
    [1, fc.string({ unit: pick(PERSON_UNITS), maxLength: 6 }).map(encodeURIComponent)],
    [1, fc.string({ maxLength: 6 }).map((text) => text.replaceAll(' ', ''))],
  );

/** Methods and targets, most of which do not exist. */
function strays(world: World): Arbitrary<Parts> {
  const base = pick([LEADS, `${LEADS}/${world.leadIds[0]}`, ...words('/healthz /readyz / /v1 /v1/integrations *')]);
  const origin = fc.tuple(
    pick(['http://', 'HTTP://', 'ftp://', '//', 'http:', 'http:///']),
    pick(['a', 'a:1', 'u:p@a', '[::1]', '', '?']),
  );
  const target = either(
    [3, base],
    [4, fc.tuple(base, somewhere, targetPieces()).map(([path, at, piece]) => changedAt(path, at, piece))],
    [1, fc.tuple(base, fc.nat()).map(([path, index]) => path.slice(0, index % path.length))],
    [2, base.chain((path) => pick([path.toUpperCase(), path + path, encodeAll(path)]))],
    [2, fc.tuple(origin, base).map(([[scheme, host], path]) => scheme + host + path)],
    [1, fc.webUrl()],
  );
  const method = either(
    [6, pick(METHODS.filter((name) => name !== 'CONNECT'))],
    [2, pick(['GET', 'POST', 'HEAD', 'OPTIONS', 'DELETE'])],
    [1, pick(['get', 'FROB', 'GETT', 'G', '', 'CONNECT', '__proto__', 'GET\t', 'X'.repeat(5000)])],
  );
  return fc
    .record({ ...common(world), method, target, body: maybeBody() })
    .map((parts) => ({ ...parts, target: asBytes(parts.target) }));
}

/** Requests at and beyond the limits of what the server reads: of a body, a header, the number of headers, or the target. */
function long(world: World): Arbitrary<Parts> {
  const valid = (id: string, size: number) => {
    const text = JSON.stringify({ displayName: 'Ada', contact: { type: 'email', value: `${id}@example.org` } });
    return Buffer.from(text.padEnd(size));
  };
  const body = fc.tuple(uuid, pick([32_767, 32_768, 32_769, 65_536, 200_000])).map(([id, size]) => ({
    method: 'POST',
    headers: [...Object.entries({ 'Content-Type': 'application/json', 'Idempotency-Key': id })],
    body: valid(id, size),
  }));
  const size = pick([8000, 16_000, 16_384, 20_000, 100_000]);
  const header = size.map((length) => ({ headers: [['X-Long', 'x'.repeat(length)]] as Header[] }));
  const many = size.map((length) => ({
    headers: Array.from({ length: length / 8 }, (_, index): Header => [`X${index}`, 'x']),
  }));
  const target = fc
    .tuple(size, pick(['/x', '?x', '&x=y', '%61']))
    .map(([length, piece]) => ({ target: LEADS + piece.repeat(length / piece.length) }));
  const extreme: Arbitrary<Partial<Parts>> = fc.oneof(body, header, many, target);
  return fc.record({ ...common(world), extreme }).map(({ extreme: more, ...parts }) => ({
    method: 'GET',
    target: LEADS,
    ...parts,
    ...more,
    headers: [...parts.headers, ...(more.headers ?? [])],
  }));
}

// ---- what all have in common ----

const common = (world: World) => ({
  account: accounts(world),
  requestId: either<string | undefined>([9, serial.map((number) => `Request-${number}_.`)], [1, only(undefined)]),
  headers: either<Header[]>([80, only([])], [20, fc.array(strangeHeaders(), { minLength: 1, maxLength: 4 })]),
  framing: framings(),
});

/** A text that is permitted in a header; one character per byte. */
function headerText(): Arbitrary<string> {
  const byte = either(
    [6, fc.integer({ min: 0x20, max: 0x7e })],
    [1, fc.integer({ min: 0x80, max: 0xff })],
    [1, only(9)],
  );
  return fc.array(byte, { maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
}

/** Headers with a meaning for some server, and values that some server rejects. */
const STRANGE_HEADERS: Readonly<Record<string, readonly string[]>> = {
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
  Forwarded: ['for=_x;host=other;proto=https', '"'],
  'X-Original-Url': ['/healthz'],
  Cookie: ['a=b', `${'a=b; '.repeat(1000)}`, '\xff'],
  Origin: ['null', 'https://page.example.test'],
  Accept: ['text/html', '*/*;q=0', 'nonsense', ''],
  'Accept-Encoding': ['gzip, br', 'identity;q=0, *;q=0'],
  'Accept-Version': ['2.0.0', '*'],
  'If-None-Match': ['*', '"x"'],
  Range: ['bytes=0-0', 'bytes=-1', 'nonsense'],
  __proto__: ['x'],
  constructor: ['x'],
  "!#$%&'*+-.^_`|~": ['x'],
};

function strangeHeaders(): Arbitrary<Header> {
  const names = pick(Object.keys(STRANGE_HEADERS));
  const others = fc.stringMatching(/^[A-Za-z-]{1,12}$/).map((name) => `X-${name}`);
  return either<Header>(
    [5, names.chain((name) => pick(STRANGE_HEADERS[name] ?? []).map((value): Header => [name, value]))],
    [2, fc.tuple(fc.oneof(names, others), headerText())],
  );
}

const maybeBody = (): Arbitrary<Buffer | undefined> =>
  either<Buffer | undefined>(
    [8, only(undefined)],
    [1, pick(['{', '{}', 'GET / HTTP/1.1\r\n\r\n', '0\r\n\r\n', '\0', '']).map((text) => Buffer.from(text))],
  );

function framings(): Arbitrary<Framing> {
  const trailers = ['X-Request-Id: trailer\r\n', 'Authorization: Bearer x\r\n', 'X: y\r\nZ: \r\n'];
  const chunks = fc.record({
    sizes: fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 4 }),
    extension: either([3, only('')], [1, pick([';a', ';a=b', ';a="b"'])]),
    trailer: either([3, only('')], [1, pick(trailers)]),
  });
  return either<Framing>([85, only('length')], [15, chunks]);
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

/** Lines that a head must not have, or only once. */
const BAD_LINES = [
  ...['Content-Length: 0', 'Content-Length: 5', 'Content-Length: +5', 'Content-Length: 99999999999999999999'],
  ...['Content-Length : 5', 'Content-Length:', 'Transfer-Encoding: chunked', 'Transfer-Encoding: identity, chunked'],
  ...['Transfer-Encoding: xchunked', 'Transfer-Encoding : chunked', 'Transfer-Encoding:\r\n chunked'],
  ...['X: a\r\n folded', 'X: a\rb', 'X: a\nb', 'X: \0', ': nameless', 'colonless', ' Host: leading'],
  ...['Host: second.example.test', 'Authorization: Bearer second'],
];

/** Ways to corrupt bytes, and deliberate violations of HTTP. */
function damages(): Arbitrary<Damage> {
  const piece = fc.oneof(
    pick([
      ...['\r\n', '\n', '\r', '\r\n\r\n', ' ', '\t', '\0', '\x0b', '\x7f', '\x85', '0\r\n\r\n'],
      ...['', ...words(', : ; HTTP/1.1 %')],
    ]).map((text) => Buffer.from(text, 'latin1')),
    fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
  );
  const inText = (change: (text: string) => string) => (bytes: Buffer) =>
    Buffer.from(change(bytes.toString('latin1')), 'latin1');
  const versions = ['HTTP/1.0', 'HTTP/0.9', 'HTTP/1.2', 'HTTP/2.0', 'http/1.1', 'HTTP/1.1 x', ''];
  const one = either<Damage>(
    [
      3,
      fc.tuple(somewhere, fc.nat(40), piece).map(
        ([at, count, by]) =>
          (bytes) =>
            spliced(bytes, at, count, by),
      ),
    ],
    [
      1,
      fc.tuple(somewhere, piece).map(
        ([at, by]) =>
          (bytes) =>
            spliced(bytes, at, 0, by),
      ),
    ],
    [2, pick(BAD_LINES).map((line) => inText((text) => text.replace('\r\n', () => `\r\n${line}\r\n`)))],
    [1, pick(versions).map((version) => inText((text) => text.replace('HTTP/1.1', () => version)))],
    [1, only(inText((text) => text.replaceAll('\r\n', '\n')))],
    [1, only(inText((text) => text.replace(/^Host.*\r\n/m, '')))],
  );
  return fc.array(one, { minLength: 1, maxLength: 2 }).map(
    (several): Damage =>
      (bytes) => {
        return several.reduce((harmed, damage) => damage(harmed), bytes);
      },
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
  const others = [
    ...['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'EHLO example.org\r\n'],
    ...['\r\n'.repeat(1000), 'GET / HTTP/1.1', `GET ${LEADS}\r\n\r\n`, '*1\r\n$4\r\nPING\r\n', '\0'.repeat(1000)],
  ];
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((values) => Buffer.from(values)),
    pick(others).map((text) => Buffer.from(text, 'latin1')),
  );
  return bytes.map((value) => doubtful(value, 'none'));
}
