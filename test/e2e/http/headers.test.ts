import { beforeAll, expect, test } from 'vitest';
import { newCoreToken, newKeySecret } from '../../../common/rules/key-secret.ts';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aCapture, anEmail, aService, LEADS, type StudioWithKey } from '../../support/service.ts';

const service = aService();
let studio: StudioWithKey;
beforeAll(async () => {
  studio = await service.aStudioWithKey();
  await service.post(studio.secret, aCapture({ contact: anEmail('taken@example.org') }));
});

type Headers = Record<string, string>;

/** One request for each kind of response of a working service. */
const ANSWERS: readonly [string, number, (headers: Headers) => Promise<Response>][] = [
  ['created', 201, (headers) => service.post(studio.secret, aCapture(), headers)],
  ['invalid', 400, (headers) => service.post(studio.secret, '{', headers)],
  ['broken address', 400, (headers) => raw(`GET ${LEADS}/%zz HTTP/1.1`, 'Host: x', headers)],
  ['no Host', 400, (headers) => raw(`GET ${LEADS} HTTP/1.1`, 'X-Nothing: x', headers)],
  ['no key', 401, (headers) => service.get('', '', headers)],
  ['unknown path', 404, (headers) => service.get(studio.secret, '/', headers)],
  ['CONNECT', 404, (headers) => raw('CONNECT x:443 HTTP/1.1', 'Host: x', headers)],
  ['wrong method', 405, (headers) => raw(`DELETE ${LEADS} HTTP/1.1`, 'Host: x', headers)],
  ['HEAD', 405, (headers) => raw(`HEAD ${LEADS} HTTP/1.1`, 'Host: x', headers)],
  [
    'open contact',
    409,
    (headers) => service.post(studio.secret, aCapture({ contact: anEmail('taken@example.org') }), headers),
  ],
];

const raw = (request: string, header: string, headers: Headers) =>
  rawRequest(
    service.url,
    lines(request, header, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), ''),
  );

const INVALID_IDS = ['', 'x'.repeat(129), 'two words', 'ü', '<script>', newKeySecret(), `id-${newCoreToken()}.1`];

test.each(ANSWERS)(
  'a valid X-Request-Id is returned in header and body, and others are replaced: %s',
  { tags: ['2.5.requestId', '7.request-id', '8.requestId'] },
  async (_, status, call) => {
    const returned = new Set<string>();
    for (const id of ['a', 'Trace.Me_42-x', 'x'.repeat(128), undefined, ...INVALID_IDS]) {
      const response = await call(id === undefined ? {} : { 'x-request-id': id });
      expect(response.status).toBe(status);
      const given = response.headers.get('x-request-id') ?? '';
      expect(given).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
      expect(given === id).toBe(id !== undefined && !INVALID_IDS.includes(id));
      returned.add(given);
      const text = await response.text();
      if (status >= 400 && text) expect(JSON.parse(text).requestId).toBe(given);
    }
    expect(returned.size).toBe(INVALID_IDS.length + 4);
  },
);

test.each(ANSWERS)(
  'no response may be cached, names its software or sets a cookie: %s',
  { tags: ['7.no-store'] },
  async (_, status, call) => {
    const { headers, status: answered } = await call({ 'if-none-match': '*', 'cache-control': 'max-age=1' });
    expect(answered).toBe(status);
    expect(headers.get('cache-control')).toBe('no-store');
    for (const name of ['etag', 'server', 'x-powered-by', 'set-cookie', 'via']) expect(headers.has(name)).toBe(false);
  },
);
