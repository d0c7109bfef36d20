/** Generates a Bruno collection from the OpenAPI document: one request per operation. Argument: the output folder. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BruRequest, envJsonToBruV2, jsonToBruV2, jsonToCollectionBru } from '@usebruno/lang';
import { openApiDocument, openApiInfo } from '../openapi.ts';

/** The properties of an operation that requests are generated from. */
interface Operation extends Readonly<Record<'operationId' | 'summary' | 'description', string>> {
  readonly parameters: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: object;
  /** A link has the location in the response of each parameter of another operation. */
  readonly responses: Readonly<Record<string, { links?: Record<string, { parameters: Record<string, string> }> }>>;
}

type Parameter = Readonly<{ name: string; in: 'header' | 'path' | 'query'; required?: boolean; example?: string }>;

/** Data of the collection's own: a lead of the reference with the same contact would make its creation a conflict. */
const CAPTURE = { displayName: 'Dorothy Vaughan', contact: { type: 'email', value: 'dorothy@example.com' } };

function requestOf(path: string, method: string, operation: Operation, seq: number): BruRequest {
  const { summary, description, requestBody, responses } = operation;
  const [status = '', { links = {} } = {}] = Object.entries(responses)[0] ?? [];
  // Without references, which are parameters of every operation. The id in a path comes from an earlier response.
  const parameters = operation.parameters
    .filter((parameter) => 'name' in parameter)
    .map(({ name, in: place, required: enabled = false, example = '' }) => ({
      place,
      parameter: { name, value: place === 'path' ? '{{leadId}}' : example, enabled },
    }));
  return {
    meta: { name: summary, type: 'http', seq: `${seq}` },
    http: {
      method,
      url: `{{baseUrl}}${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
      body: requestBody ? 'json' : 'none',
      auth: 'inherit',
    },
    params: parameters.flatMap(({ place, parameter }) => (place === 'header' ? [] : [{ ...parameter, type: place }])),
    headers: parameters.flatMap(({ place, parameter }) => (place === 'header' ? [parameter] : [])),
    ...(requestBody && { body: { json: JSON.stringify(CAPTURE, null, 2) } }),
    vars: {
      res: Object.entries(links).flatMap(([name, { parameters }]) =>
        Object.entries(parameters).map(([parameter, pointer]) => ({
          name: `${name}${parameter[0]?.toUpperCase()}${parameter.slice(1)}`,
          value: pointer.replace('$response.body#', 'res.body').replaceAll('/', '.'),
          enabled: true,
          local: false,
        })),
      ),
    },
    assertions: [{ name: 'res.status', value: `eq ${status}`, enabled: true }],
    docs: description,
  };
}

const [, , folder = 'examples/bruno'] = process.argv;
rmSync(folder, { recursive: true, force: true });
mkdirSync(join(folder, 'environments'), { recursive: true });
const write = (name: string, text: string) => writeFileSync(join(folder, name), `${text.trimEnd()}\n`);

write('bruno.json', JSON.stringify({ version: '1', name: openApiInfo.title, type: 'collection' }, null, 2));
write('collection.bru', jsonToCollectionBru({ auth: { mode: 'bearer', bearer: { token: '{{apiKey}}' } } }));
const variables = [
  { name: 'baseUrl', value: 'http://127.0.0.1:8080', enabled: true, secret: false },
  { name: 'apiKey', value: '', enabled: true, secret: true },
];
write('environments/local.bru', envJsonToBruV2({ variables }));
const { paths } = openApiDocument('{{baseUrl}}') as { paths: Record<string, Record<string, Operation>> };
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);
for (const [index, { path, method, operation }] of operations.entries()) {
  const name = operation.operationId.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  write(`${name}.bru`, jsonToBruV2(requestOf(path, method, operation, index + 1)));
}
