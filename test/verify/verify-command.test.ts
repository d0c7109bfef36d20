import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { Api } from '../../verify/api.ts';
import { verify as verifyFromHere } from '../../verify/verify.ts';
import { times } from '../support/builders.ts';
import { aService, type StudioWithKey } from '../support/service.ts';
import { ROOT } from '../tools/processes.ts';

const service = aService();
let studio: StudioWithKey;
let reader: string;

beforeAll(async () => {
  studio = await service.aStudioWithKey();
  ({ secret: reader } = await service.aStudioWithKey({ scopes: [ApiKeyScope.LEADS_READ] }));
});

/** Runs the command with a key on standard input, or in the environment. */
async function verify(
  baseUrl: string,
  key: { readonly typed: string } | { readonly set: string; readonly source?: string },
  ...options: string[]
) {
  const [set, source] = 'set' in key ? [key.set, key.source ?? ''] : ['', ''];
  const env = { PATH: process.env.PATH, LEAD_INTAKE_KEY: set, LEAD_INTAKE_SOURCE_ID: source };
  const child = spawn(join(ROOT, 'operator/cli.ts'), [...options, 'verify', '--base-url', baseUrl], { env });
  child.stdin.end('typed' in key ? `${key.typed}\n` : '');
  const [printed, progress, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { status, printed, progress };
}

test('verify reports a conforming deployment as JSON with status 0, and shows its progress', async () => {
  const { status, printed, progress } = await verify(service.url, { typed: studio.secret }, '--json');

  const { counts, rules, checks } = JSON.parse(printed);
  expect(counts.rules).toMatchObject({ failed: 0 });
  expect(rules).toContainEqual({
    rule: '2.3.lead',
    text: 'A response with a lead is an object with the one property lead.',
    verdict: 'passed',
  });
  expect(checks[0]).toMatchObject({ verdict: 'passed', rules: expect.arrayContaining(['5.1']) });
  expect(progress).toMatch(/^ {2}1\/\d+ {2}a request without a key is refused with 401/);
  expect(printed + progress).not.toContain(studio.secret);
  expect(status).toBe(0);
});

// @proves leads-1
test('verify reports a broken rule in a table with the reason and status 1', async () => {
  const faulty = createServer(async (request, response) => {
    const body = request.method === 'POST' ? await text(request) : undefined;
    const headers = Object.entries(request.headers).filter(([name]) => !['host', 'connection'].includes(name));
    const {
      status,
      headers: answered,
      ...rest
    } = await fetch(service.url + request.url, {
      method: request.method as string,
      headers: headers as [string, string][],
      ...(body !== undefined && { body }),
    }).then(async (answer) => ({ status: answer.status, headers: answer.headers, text: await answer.text() }));
    // A header that a well-meant proxy may add.
    response.writeHead(status, {
      'content-type': answered.get('content-type') ?? '',
      'access-control-allow-origin': '*',
    });
    response.end(rest.text);
  });
  faulty.listen(0, '127.0.0.1');
  onTestFinished(() => void faulty.close());
  await once(faulty, 'listening');
  const { port } = faulty.address() as AddressInfo;

  const { status, printed } = await verify(`http://127.0.0.1:${port}`, { set: studio.secret });

  expect(printed).toMatch(/^FAILED +1\.no-browser .*\n.*a response has the header access-control-allow-origin/m);
  expect(printed).toMatch(/^passed +4\.1\.1 +The same key with the same data/m);
  expect(printed).toMatch(/^not checked +5\.11 .*\n +needs a suspended studio$/m);
  expect(printed).toMatch(/, 1 are broken, \d+ cannot be checked with one key\.\n$/);
  expect(status).toBe(1);
});

// @proves leads-1
test('verify reports no broken rule because of a studio with thousands of leads', async () => {
  const { studioId, secret, sourceId } = await service.aStudioWithKey();
  const aLead = () => ({
    idempotencyKey: randomUUID(),
    displayName: 'Ada',
    contact: { value: { case: 'email', value: `${randomUUID()}@example.org` } } as const,
  });
  for (const _ of times(SOME_LEADS / 100, () => 0)) {
    await service.leads.importLeads({ studioId, leads: times(100, aLead) });
  }
  expect(await service.countLeads(studioId)).toBe(SOME_LEADS);

  const { checks } = await verifyFromHere(new Api(service.url, secret, sourceId), { quota: false });

  const broken = checks.filter(({ verdict }) => verdict === 'failed');
  expect(broken.map(({ title, why }) => `${title}: ${why}`)).toEqual([]);
}, 600_000);

/** More than twenty pages of the largest size contain. */
const SOME_LEADS = 2100;

/** Another website, which has a page at every address. */
const anotherWebsite = createServer((_, response) => {
  response.setHeader('content-type', 'text/html').end('<h1>Welcome</h1>');
}).listen(0, '127.0.0.1');
afterAll(() => void anotherWebsite.close());
const toAddress = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const NOT_OF_SERVICE = /^the address does not answer as the service, but with status /;
interface Mistake {
  readonly of?: () => string;
  readonly source?: string;
}
test.each<[string, () => string, Mistake, RegExp]>([
  ['an unknown key', () => service.url, {}, /^the key is refused with status 401/],
  ['a key without a scope', () => service.url, { of: () => reader }, /^the key is refused with status 403/],
  ['no server at the address', () => 'http://127.0.0.1:65535', {}, /^the deployment does not answer: .*ECONNREFUSED/],
  ['an address with /v1', () => `${service.url}/v1`, {}, NOT_OF_SERVICE],
  ['another website at the address', () => toAddress(anotherWebsite), {}, NOT_OF_SERVICE],
  ['a source that is no UUID', () => service.url, { source: 'website' }, /^LEAD_INTAKE_SOURCE_ID is not a UUID/],
])('verify reports %s in a line and status 2', async (_what, baseUrl, { of = () => 'lik_nobody', ...key }, message) => {
  const { status, printed, progress } = await verify(baseUrl(), { set: of(), ...key });

  expect(progress).toMatch(message);
  expect(progress.trim().split('\n')).toHaveLength(1);
  expect(printed).toBe('');
  expect(status).toBe(2);
});
