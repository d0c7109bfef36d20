import { METHODS } from 'node:http';
import fc, { type Arbitrary } from 'fast-check';
import { HARD_TEXTS } from '../support/builders.ts';
import { LEADS } from '../support/service.ts';

/** The state of the key in a request. */
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
  /** A usable source; the others are disabled, of another studio, or nonexistent. */
  readonly sourceId: string;
  readonly otherSourceIds: readonly string[];
  /** Leads of the good key's studio, and of another studio. */
  readonly leadIds: readonly string[];
  readonly foreignLeadIds: readonly string[];
  /** Cursors of the good key's studio, and of another studio. */
  readonly cursors: readonly string[];
  readonly foreignCursors: readonly string[];
}

/** A request as bytes, with the facts that determine its response. */
export interface HostileRequest {
  readonly bytes: Buffer;
  /** `whole`: exactly one request; `cut`: less than one; `unknown`: undetermined. */
  readonly framing: 'whole' | 'cut' | 'unknown';
  readonly key: KeyState;
  /** The id that the response must carry. */
  readonly requestId?: string;
  /** The body of a creation without other faults, so that it alone decides the response. */
  readonly capture?: Buffer;
  /** Whether the server may stop reading before the end of the request, and close the connection after its response. */
  readonly isLong?: boolean;
}

type Header = readonly [name: string, value: string];

/** The parts of a request. Each character of a text stands for one byte. */
interface Parts {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly Header[];
  readonly account: { readonly key: KeyState; readonly authorization: string | undefined };
  readonly requestId: string | undefined;
  readonly body?: Buffer | undefined;
  /** A body sent in chunks: their sizes except the last, an extension and a trailer. */
  readonly chunks:
    | { readonly sizes: readonly number[]; readonly extension: string; readonly trailer: string }
    | undefined;
  readonly isDecidedByBody?: boolean;
}

type Change<Of> = (of: Of) => Of;

/** Chooses one of several, by weight. */
const either = <T>(...choices: readonly (readonly [weight: number, of: Arbitrary<T>])[]): Arbitrary<T> =>
  fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const pick = <T>(values: readonly T[]): Arbitrary<T> => fc.constantFrom(...values);
const only = <T>(value: T): Arbitrary<T> => fc.constant(value);
const words = (text: string): string[] => text.split(/\s+/);

/** A position in a text, as a share of its length. */
const somewhere = fc.double({ min: 0, max: 1, noNaN: true });

/** Makes up to two changes to most values, and none to the others. */
const changed = <Of>(of: Arbitrary<Of>, changes: Arbitrary<Change<Of>>): Arbitrary<Of> =>
  fc
    .tuple(of, either([7, only([])], [3, fc.array(changes, { minLength: 1, maxLength: 2 })]))
    .map(([from, all]) => all.reduce((value, change) => change(value), from));

/** Replaces bytes at a position. */
function spliced(whole: Buffer, share: number, count: number, by: Buffer): Buffer {
  const at = Math.floor(share * whole.length);
  return Buffer.concat([whole.subarray(0, at), by, whole.subarray(at + count)]);
}

/** Replaces bytes of a text at a position, keeping one character per byte. */
const splicedText = (text: string, share: number, count: number, by: string) =>
  spliced(Buffer.from(text, 'latin1'), share, count, Buffer.from(by)).toString('latin1');

/** Generates every kind of request that this suite covers. */
export function hostileRequests(world: World): Arbitrary<HostileRequest> {
  const good = either([48, creations(world)], [14, reads(world)], [14, lists(world)], [6, others(world)]);
  const whole = changed(good, changes());
  const request = whole.map(render);
  return either(
    [82, request],
    [5, fc.tuple(request, fc.nat()).map(([of, at]) => cut(of, at))],
    [11, fc.tuple(whole, fc.array(damages(), { minLength: 1, maxLength: 2 })).map((of) => damaged(world, ...of))],
    [2, garbage().map((bytes) => doubtful(bytes, 'none'))],
  );
}

/** Returns the text and the facts of a request, for a report. */
export function describeRequest({ bytes, ...facts }: HostileRequest): string {
  return `${JSON.stringify(bytes.toString('latin1', 0, 3000))} ${JSON.stringify({ ...facts, capture: undefined })}`;
}

/** The parts that all requests have in common. */
function common({ secrets }: World) {
  const [secret = ''] = secrets.good;
  const malformed = [
    ...['', 'Bearer', 'Bearer ', secret, `Bearer${secret}`, `Basic ${secret}`, `Bearer ${secret} x`],
    ...[`Bearer ${secret.slice(0, -1)}`, `Bearer ${secret}\xe9`, `Bearer ${'lik_'.repeat(2000)}`],
  ];
  const inState = (key: keyof World['secrets']) =>
    pick(secrets[key]).map((each): Parts['account'] => ({ key, authorization: `Bearer ${each}` }));
  const otherKeys = ['unknown', 'dead', 'read-only', 'create-only', 'suspended', 'demoted', 'foreign'] as const;
  const chunks = fc.record({
    sizes: fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 4 }),
    extension: pick(['', '', ';a', ';a=b', ';a="b"']),
    trailer: pick(['', '', 'X-Request-Id: trailer\r\n', 'Authorization: Bearer x\r\n', 'X: y\r\nZ: \r\n']),
  });
  return {
    account: either<Parts['account']>(
      [70, inState('good')],
      [5, only({ key: 'none', authorization: undefined })],
      [10, pick(malformed).map((authorization) => ({ key: 'malformed', authorization }))],
      ...otherKeys.map((key) => [2, inState(key)] as const),
    ),
    requestId: either<string | undefined>([9, serial.map((number) => `Request-${number}_.`)], [1, only(undefined)]),
    chunks: either<Parts['chunks']>([85, only(undefined)], [15, chunks]),
  };
}

// ---- creations ----

/** A number that is practically unique. */
const serial = fc.noBias(fc.maxSafeNat());

const uuid = serial.map((number) => {
  const digits = number.toString(16).padStart(14, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(11)}-8000-000000000000`;
});

/** Few enough ids for requests to collide. */
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
  ...words('0b4c1d6a9d3e4a538a5f6f1f0f0d7c11 0b4c1d6a-9d3e-0a53-8a5f-6f1f0f0d7c11 retry-1'),
  ...['', ' ', 'x'.repeat(5000)],
];
const RARE_UUIDS = words('00000000-0000-0000-0000-000000000000 FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF');

function creations(world: World): Arbitrary<Parts> {
  const idempotencyKey = either([80, uuid], [12, pick(SHARED_IDS)], [4, pick(RARE_UUIDS)]);
  const creation = either([19, fc.record({ idempotencyKey, body: bodies(world) })], [1, pick(REPEATED)]);
  return fc.record({ ...common(world), creation }).map(({ creation: { idempotencyKey, body }, ...parts }) => ({
    ...{ ...parts, body, method: 'POST', target: LEADS, isDecidedByBody: true },
    headers: [
      ['Content-Type', 'application/json'],
      ['Idempotency-Key', idempotencyKey],
    ],
  }));
}

/** Bodies of creations: valid ones, ones with a fault, and texts that are barely JSON. */
const bodies = (world: World): Arbitrary<Buffer> =>
  either(
    [
      93,
      changed(
        captures(world).map((value) => Buffer.from(JSON.stringify(value))),
        either([3, insertions()], [4, spoilings()]),
      ),
    ],
    [3, fc.jsonValue({ maxDepth: 4 }).map((value) => Buffer.from(JSON.stringify(value)))],
    [2, pick(ODD_JSON).map((text) => Buffer.from(text))],
  );

const DEEP = 15_000;

/** Bodies of other JSON, or of no JSON. */
const ODD_JSON = [
  ...['', ' \t\r\n', '9'.repeat(30_000), '['.repeat(DEEP)],
  ...words('null true 0 "" [] {} [{}] {"__proto__":{}} 1e999999 "\\ud800"'),
  `{"displayName":"A","contact":{"type":"email","value":"a@b"},"note":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`,
  `{${Array.from({ length: 2500 }, (_, index) => `"x${index}":0`).join()}}`,
  `{${'"displayName":"A",'.repeat(1500)}"contact":{"type":"email","value":"dup@example.org"}}`,
];

/** Characters that implementations count or read differently. */
const PERSON_UNITS = ['a', 'é', '😀', '\u0301', '\u202e', '\u{10ffff}', '"', '\\', '\n', '<', '\u2028', '\ufeff'];

const texts = (max: number): Arbitrary<string> =>
  either(
    [8, fc.string({ unit: pick(PERSON_UNITS), minLength: 1, maxLength: 8 })],
    [3, pick(Object.values(HARD_TEXTS))],
    [5, fc.tuple(pick(PERSON_UNITS), pick([0, 1, max - 1, max, max + 1])).map(([unit, size]) => unit.repeat(size))],
    [1, pick(['x\0y', 'x\ud800y', 'x\udc00y'])],
  );

/** Creations whose properties may be valid. Most creations are unusual in one respect only. */
function captures(world: World): Arbitrary<object> {
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
  const sourceId = either<string | null>(
    [6, pick([world.sourceId, world.sourceId.toUpperCase(), null])],
    [3, pick([...world.otherSourceIds, ...NEARLY_UUIDS])],
  );
  const all = { displayName: texts(160), contact, sourceId, note: fc.option(texts(2000)) };
  return either<object>(
    [6, contact.map((value) => ({ displayName: 'Ada', contact: value }))],
    [4, fc.record(all, { requiredKeys: ['displayName', 'contact'] })],
    [1, fc.record(all, { requiredKeys: [] })],
  );
}

/** Ways to insert a property with any name and value into a body: in front, at the end, or in its contact. */
function insertions(): Arbitrary<Change<Buffer>> {
  const name = fc.oneof(
    pick(words('displayName contact sourceId note type value extra __proto__ constructor a/b~1 \ud800')),
    fc.string({ maxLength: 10 }),
  );
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }).map((json) => JSON.stringify(json)),
    pick(['1e400', '-0', '1'.repeat(400), '{"type":"email"}', '[[[[[[]]]]]]']),
  );
  const place = pick([/^\{/, /"contact":\{/, /\}(?=\}$)/, /\}$/]);
  return fc.tuple(place, name, value).map(([at, of, json]) => (body) => {
    const property = `${JSON.stringify(of)}:${json}`;
    return Buffer.from(`${body}`.replace(at, (found) => (found === '}' ? `,${property}}` : `${found}${property},`)));
  });
}

/** Ways to corrupt the text of a body. */
function spoilings(): Arbitrary<Change<Buffer>> {
  const bytes = pick(words('ff c0af eda080 e282 f4908080 00 0a 22 5c 7d 2c 5c75 efbbbf'));
  const inText = pick<Change<string>>([
    (text) => `\ufeff${text}`,
    (text) => text + text,
    (text) => ` \r\n\t${text}\r\n `,
    (text) => text.replace(/[a-z]/g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`),
    (text) => `[${text}]`,
  ]);
  return fc.oneof<Arbitrary<Change<Buffer>>[]>(
    fc.tuple(somewhere, fc.nat(4), bytes).map(([share, count, by]) => (body) => {
      return spliced(body, share, count, Buffer.from(by, 'hex'));
    }),
    somewhere.map((share) => (body) => body.subarray(0, Math.floor(share * body.length))),
    inText.map((change) => (body) => Buffer.from(change(`${body}`))),
    only((body) => Buffer.from(`\ufeff${body}`, 'utf16le')),
  );
}

// ---- reads, lists, and others ----

function reads(world: World): Arbitrary<Parts> {
  const id = either(
    [7, pick(world.leadIds).chain((each) => pick([each, each, each.toUpperCase(), encodeAll(each)]))],
    [3, pick(world.foreignLeadIds)],
    [5, fc.oneof(uuid, pick(RARE_UUIDS))],
    [3, pick(NEARLY_UUIDS).map(encodeURIComponent)],
  );
  return fc
    .record({ ...common(world), id })
    .map(({ id: leadId, ...parts }) => ({ ...parts, headers: [], method: 'GET', target: `${LEADS}/${leadId}` }));
}

function lists(world: World): Arbitrary<Parts> {
  const known = pick(world.cursors);
  const cursor = either(
    [4, known],
    [2, pick(world.foreignCursors)],
    [4, fc.tuple(known, somewhere, pick([...'Aa0-_=.%'])).map(([text, ...at]) => splicedText(text, at[0], 1, at[1]))],
    [2, known.chain((text) => pick([text.slice(1), text + text, encodeAll(text)]))],
    [1, pick([44, 512, 513, 9000]).map((size) => 'A'.repeat(size))],
  );
  const limit = either(
    [5, fc.integer({ min: -2, max: 102 }).map(String)],
    [2, pick(['', '0', '007', '1e1', '%31', '+1', '1%00', '٣'])],
  );
  const parameter = either(
    [5, limit.map((value) => `limit=${value}`)],
    [5, cursor.map((value) => `cursor=${value}`)],
    [1, pick(['=', '&', 'limit[]=1', '__proto__=x', 'Limit=0'])],
  );
  return fc.record({ ...common(world), query: fc.array(parameter, { maxLength: 3 }) }).map(({ query, ...parts }) => ({
    ...parts,
    headers: [],
    method: 'GET',
    target: `${LEADS}?${asBytes(query.join('&'))}`,
  }));
}

const encodeAll = (text: string) => [...text].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
const asBytes = (text: string) => Buffer.from(text).toString('latin1');

/** Paths and methods, most of which do not exist together. */
function others(world: World): Arbitrary<Parts> {
  const path = pick([LEADS, `${LEADS}/${world.leadIds[0]}`, ...words('/healthz /readyz / /v1 /v1/integrations *')]);
  const origin = pick([...Array(9).fill(''), ...words('http://a http://u:p@a HTTP:// ftp://a // http:///')]);
  return fc
    .record({ ...common(world), path, origin, method: pick(METHODS.filter((name) => name !== 'CONNECT')) })
    .map(({ path: of, origin: from, ...parts }) => ({ ...parts, headers: [], target: from + of }));
}

// ---- changes ----

/** Parts of a target that routers, decoders and proxies interpret differently. */
const PIECES = [
  ...words(String.raw`/ // /. /.. /./ /../ /../../healthz %2f %2F..%2F %2e%2e %252e %00 % %z %zz %4 %c0%af %ed%a0%80 %ff
    %0d%0aX-Injected:%20x %C3%BC %E2%80%AE %u0041 ; ;a=b \ %5c ? ?? # & = + %20 ü ＠ * :id {id} <script> " | ^ '
    __proto__ constructor ~ .json @example.org`),
  ...['\u202e', '`', 'x'.repeat(300), 'x'.repeat(9000), '%61'.repeat(2000), '/a'.repeat(2000)],
];

/** Headers that some server interprets, with values that some server rejects. */
const STRANGE_HEADERS: Readonly<Record<string, readonly string[]>> = {
  'Content-Type': [
    'Application/JSON',
    'application/json;charset=utf-16',
    'application/json; charset="\xff"',
    'text/plain',
  ],
  'Idempotency-Key': NEARLY_UUIDS,
  Host: ['other.example.test', '', 'a b', '[::1', '127.0.0.1:99999', 'a'.repeat(3000), '\xff'],
  Expect: ['100-continue', '100-continue, x', 'x', ''],
  Connection: ['keep-alive', 'close', 'Upgrade', 'Authorization, Host', '', 'close, keep-alive'],
  Upgrade: ['h2c', 'websocket', ''],
  'Content-Encoding': ['gzip', 'nonsense'],
  TE: ['trailers', 'chunked', 'gzip;q=2'],
  Trailer: ['Authorization', 'Content-Length'],
  'X-Request-Id': ['', 'two words', 'x'.repeat(129), '\xfc'],
  'X-Http-Method-Override': ['DELETE', 'POST'],
  'X-Forwarded-For': [`${'1.1.1.1, '.repeat(500)}`, '\xff'],
  Cookie: [`${'a=b; '.repeat(1000)}`, '\xff'],
  Origin: ['https://page.example.test'],
  Accept: ['text/html', '*/*;q=0', ''],
  'Accept-Encoding': ['gzip, br', 'identity;q=0, *;q=0'],
  'If-None-Match': ['*'],
  Range: ['bytes=-1'],
  __proto__: ['x'],
  "!#$%&'*+-.^_`|~": ['x'],
};

/** Ways to make a whole request unusual, up to and beyond the limits of a server. */
function changes(): Arbitrary<Change<Parts>> {
  // Any byte that is permitted in a header.
  const byte = fc.oneof(fc.integer({ min: 0x20, max: 0x7e }), fc.integer({ min: 0x80, max: 0xff }), only(9));
  const anyText = fc.array(byte, { maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
  const header = pick(Object.keys(STRANGE_HEADERS)).chain((name) =>
    fc.tuple(only(name), either([3, pick(STRANGE_HEADERS[name] ?? [])], [1, anyText])),
  );
  const withHeader = (parts: Parts, ...more: readonly Header[]) => ({ ...parts, headers: [...parts.headers, ...more] });
  const size = pick([8000, 16_000, 16_384, 20_000, 100_000]);
  const piece = either([7, pick(PIECES)], [1, fc.string({ maxLength: 6 }).map((text) => text.replaceAll(' ', ''))]);
  const method = pick([
    'get',
    'FROB',
    '',
    'HEAD',
    'OPTIONS',
    'DELETE',
    'CONNECT',
    '__proto__',
    'GET\t',
    'X'.repeat(5000),
  ]);
  const body = pick(['{', '{}', 'GET / HTTP/1.1\r\n\r\n', '0\r\n\r\n', '\0', ' '.repeat(32_769), ' '.repeat(200_000)]);
  const one = either<Change<Parts>>(
    [8, header.map((more) => (parts) => withHeader(parts, more))],
    [
      4,
      header.map(([name, value]) => (parts) => {
        return withHeader({ ...parts, headers: parts.headers.filter(([each]) => each !== name) }, [name, value]);
      }),
    ],
    [2, fc.nat(1).map((at) => (parts) => ({ ...parts, headers: parts.headers.toSpliced(at, 1) }))],
    [
      6,
      fc.tuple(somewhere, fc.nat(1), piece).map(([at, count, by]) => (parts) => {
        return { ...parts, target: splicedText(parts.target, at, count, by) };
      }),
    ],
    [3, method.map((name) => (parts) => ({ ...parts, method: name }))],
    [
      2,
      body.map((text) => (parts) => ({
        ...parts,
        body: Buffer.concat([parts.body ?? Buffer.alloc(0), Buffer.from(text)]),
      })),
    ],
    [1, size.map((length) => (parts) => withHeader(parts, ['X-Long', 'x'.repeat(length)]))],
    [1, size.map((length) => (parts) => withHeader(parts, ...Array(length / 8).fill(['X1', 'x'])))],
  );
  return one.map((change) => (parts) => ({ ...change(parts), isDecidedByBody: false }));
}

// ---- to bytes ----

function render(parts: Parts): HostileRequest {
  const { method, target, requestId, body, chunks, isDecidedByBody } = parts;
  const { key, authorization } = parts.account;
  const isChunked = chunks !== undefined && body !== undefined;
  // The first Host and the first id count; more of them make the request ambiguous.
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
    body === undefined ? Buffer.alloc(0) : isChunked ? inChunks(body, chunks) : body,
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

function inChunks(body: Buffer, { sizes, extension, trailer }: NonNullable<Parts['chunks']>): Buffer {
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

/** Lines that a head must not contain, or only once. */
const BAD_LINES = [
  ...['Content-Length: 0', 'Content-Length: 5', 'Content-Length: +5', 'Content-Length: 99999999999999999999'],
  ...['Transfer-Encoding: chunked', 'Transfer-Encoding: xchunked', 'Transfer-Encoding:\r\n chunked'],
  ...['X: a\r\n folded', 'X: a\rb', 'X: a\nb', 'X: \0', ': nameless', ' Host: leading'],
  ...['Host: second.example.test', 'Authorization: Bearer second'],
];

/** Ways to corrupt bytes, and deliberate violations of HTTP. */
function damages(): Arbitrary<Change<Buffer>> {
  const marks = [
    '\r\n',
    '\n',
    '\r',
    '\r\n\r\n',
    ' ',
    '\t',
    '\0',
    '\x7f',
    '0\r\n\r\n',
    '',
    ...words(', : ; HTTP/1.1 %'),
  ];
  const piece = fc.oneof(
    pick(marks).map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 8 }).map((of) => Buffer.from(of)),
  );
  const line = pick(BAD_LINES).map(
    (each): Change<string> =>
      (text) =>
        text.replace('\r\n', () => `\r\n${each}\r\n`),
  );
  const version = pick(['HTTP/1.0', 'HTTP/0.9', 'HTTP/1.2', 'HTTP/2.0', 'http/1.1', 'HTTP/1.1 x', '']);
  const inText = either<Change<string>>(
    [2, line],
    [1, version.map((each) => (text) => text.replace('HTTP/1.1', () => each))],
    [1, only((text) => text.replaceAll('\r\n', '\n'))],
    [1, only((text) => text.replace(/^Host.*\r\n/m, ''))],
  );
  return fc.oneof<Arbitrary<Change<Buffer>>[]>(
    fc.tuple(somewhere, fc.nat(40), piece).map(
      ([at, count, by]) =>
        (bytes) =>
          spliced(bytes, at, count, by),
    ),
    inText.map((change) => (bytes) => Buffer.from(change(bytes.toString('latin1')), 'latin1')),
  );
}

function damaged(world: World, parts: Parts, all: readonly Change<Buffer>[]): HostileRequest {
  // The effects of this request are confined to a separate studio.
  const { key } = parts.account;
  const opens = ['good', 'read-only', 'create-only', 'foreign'].includes(key);
  const account = opens ? { key: 'good' as const, authorization: `Bearer ${world.scratchSecret}` } : parts.account;
  return doubtful(
    all.reduce((bytes, damage) => damage(bytes), render({ ...parts, account }).bytes),
    account.key,
  );
}

/** Completes the request for a server that waits for the rest of a head or a short body; others may skip empty lines. */
const LINE_ENDS = Buffer.from('\r\n'.repeat(50));

const doubtful = (bytes: Buffer, key: KeyState): HostileRequest => ({
  bytes: Buffer.concat([bytes, LINE_ENDS]),
  framing: 'unknown',
  key,
});

/** Input that is not HTTP at all. */
function garbage(): Arbitrary<Buffer> {
  const others = [
    ...['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'EHLO example.org\r\n'],
    ...['\r\n'.repeat(1000), 'GET / HTTP/1.1', `GET ${LEADS}\r\n\r\n`, '*1\r\n$4\r\nPING\r\n', '\0'.repeat(1000)],
  ];
  return fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((values) => Buffer.from(values)),
    pick(others).map((text) => Buffer.from(text, 'latin1')),
  );
}
