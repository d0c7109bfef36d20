/** Generates a Bruno collection from the OpenAPI document: one request per operation. Argument: the output folder. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BruRequest, envJsonToBruV2, jsonToBruV2, jsonToCollectionBru } from '@usebruno/lang';
import { openApiDocument, openApiInfo } from '../openapi.ts';

/** The properties of an operation that requests are generated from. */
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly examples: Examples }>> };
  readonly responses: Readonly<Record<string, { readonly links?: Readonly<Record<string, Link>> }>>;
}

interface Parameter {
  readonly name: string;
  readonly in: 'header' | 'path' | 'query';
  readonly required?: boolean;
  readonly example?: string;
}

type Examples = Readonly<Record<string, { readonly value: unknown }>>;

/** The location in a response of each parameter of another operation. */
interface Link {
  readonly parameters: Readonly<Record<string, string>>;
}

function operations() {
  const { paths } = openApiDocument('{{baseUrl}}') as { paths: Record<string, Record<string, Operation>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

function requestOf(path: string, method: string, operation: Operation, seq: number): BruRequest {
  const { summary, description, requestBody, responses } = operation;
  const [status = '', { links = {} } = {}] = Object.entries(responses)[0] ?? [];
  // Without references, which are parameters of every operation.
  const parameters = operation.parameters.filter((parameter) => 'name' in parameter);
  return {
    meta: { name: summary, type: 'http', seq: `${seq}` },
    http: {
      method,
      url: `{{baseUrl}}${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
      body: requestBody ? 'json' : 'none',
      auth: 'inherit',
    },
    params: parameters.flatMap((each) => (each.in === 'header' ? [] : [{ ...parameterOf(each), type: each.in }])),
    headers: parameters.filter((each) => each.in === 'header').map(parameterOf),
    ...(requestBody && { body: { json: JSON.stringify(CAPTURE, null, 2) } }),
    vars: { res: Object.entries(links).flatMap(([name, link]) => variablesOf(name, link)) },
    assertions: [{ name: 'res.status', value: `eq ${status}`, enabled: true }],
    docs: description,
  };
}

/** Enables required parameters; the id in a path comes from an earlier response. */
function parameterOf({ name, in: place, required = false, example = '' }: Parameter) {
  return { name, value: place === 'path' ? '{{leadId}}' : example, enabled: required };
}

/** Returns the variables that a response sets for later requests. */
function variablesOf(name: string, { parameters }: Link) {
  return Object.entries(parameters).map(([parameter, pointer]) => ({
    name: `${name}${parameter[0]?.toUpperCase()}${parameter.slice(1)}`,
    value: pointer.replace('$response.body#', 'res.body').replaceAll('/', '.'),
    enabled: true,
    local: false,
  }));
}

/** Data of the collection's own: a lead of the reference with the same contact would make its creation a conflict. */
const CAPTURE = { displayName: 'Dorothy Vaughan', contact: { type: 'email', value: 'dorothy@example.com' } };

const [, , folder = 'examples/bruno'] = process.argv;
rmSync(folder, { recursive: true, force: true });
mkdirSync(join(folder, 'environments'), { recursive: true });
const write = (name: string, text: string) => writeFileSync(join(folder, name), `${text.trimEnd()}\n`);

const collection = { version: '1', name: openApiInfo.title, type: 'collection' };
write('bruno.json', JSON.stringify(collection, null, 2));
write('collection.bru', jsonToCollectionBru({ auth: { mode: 'bearer', bearer: { token: '{{apiKey}}' } } }));
const variables = [
  { name: 'baseUrl', value: 'http://127.0.0.1:8080', enabled: true, secret: false },
  { name: 'apiKey', value: '', enabled: true, secret: true },
];
write('environments/local.bru', envJsonToBruV2({ variables }));
for (const [index, { path, method, operation }] of operations().entries()) {
  const name = operation.operationId.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  write(`${name}.bru`, jsonToBruV2(requestOf(path, method, operation, index + 1)));
}
