import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BruRequest, bruToEnvJsonV2, bruToJsonV2, collectionBruToJson } from '@usebruno/lang';
import { expect, test } from 'vitest';
import { document, expectDocumentedAnswer } from '../support/documented.ts';
import { ROOT } from '../support/processes.ts';
import { aService } from '../support/service.ts';

const FOLDER = join(ROOT, 'examples/bruno');
const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');

const { auth } = collectionBruToJson(read('collection.bru'));
const requests = globSync('*.bru', { cwd: FOLDER, exclude: ['collection.bru'] })
  .map((name) => bruToJsonV2(read(name)))
  .toSorted((a, b) => Number(a.meta.seq) - Number(b.meta.seq));

const service = aService();

type Variables = Map<string, string>;

const filledIn = (text: string, variables: Variables) =>
  text.replaceAll(/\{\{(\w+)\}\}/g, (gap, name) => variables.get(name) ?? gap);

/** Sends a request as Bruno does, checks its assertions, and keeps the variables that it sets from the response. */
async function send(
  { http, params = [], headers = [], body, vars, assertions = [] }: BruRequest,
  variables: Variables,
) {
  const fill = (text: string) => filledIn(text, variables);
  const inPath = new Map(params.filter(({ type }) => type === 'path').map(({ name, value }) => [name, fill(value)]));
  const url = new URL(fill(http.url).replaceAll(/:([a-z]+)/g, (gap, name) => inPath.get(name) ?? gap));
  for (const { name, value, type, enabled } of params) {
    if (enabled && type === 'query') url.searchParams.set(name, fill(value));
  }
  expect(http).toMatchObject({ auth: 'inherit', body: body ? 'json' : 'none' });
  const given = headers.filter(({ enabled }) => enabled).map(({ name, value }) => [name, fill(value)] as const);
  const response = await fetch(url, {
    method: http.method.toUpperCase(),
    headers: {
      authorization: `Bearer ${fill(auth.bearer.token)}`,
      ...(body && { 'content-type': 'application/json' }),
      ...Object.fromEntries(given),
    },
    ...(body && { body: body.json }),
  });
  await expectDocumentedAnswer(http.method.toUpperCase(), url.pathname, response.clone());
  expect(assertions).toEqual([{ name: 'res.status', value: `eq ${response.status}`, enabled: true }]);
  const answer = { body: await response.json() };
  for (const { name, value } of vars?.res ?? []) {
    const found = value
      .split('.')
      .slice(1)
      .reduce<unknown>((part, key) => (part as Record<string, unknown>)[key], answer);
    variables.set(name, String(found));
  }
  return response;
}

test('the collection has a request for each operation of the OpenAPI document', () => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} {{baseUrl}}${path.replace('{id}', ':id')}`),
  );
  expect(requests.map(({ http: { method, url } }) => `${method} ${url}`)).toEqual(operations);
});

// @proves clients-1
test('each of its requests, in a sequence that is sent twice, gets the response that it asserts', async () => {
  const { secret, studioId } = await service.aStudioWithKey();
  const { variables: environment } = bruToEnvJsonV2(read('environments/local.bru'));
  expect(environment.map(({ name, secret }) => [name, secret])).toEqual([
    ['baseUrl', false],
    ['apiKey', true],
  ]);
  const variables = new Map([
    ['baseUrl', service.url],
    ['apiKey', secret],
  ]);

  for (const request of [...requests, ...requests]) await send(request, variables);

  expect(variables.get('leadId')).toMatch(/^[\da-f-]{36}$/);
  expect(await service.countLeads(studioId)).toBe(1);
});
