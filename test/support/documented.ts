import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { openApiDocument } from '../../gateway/docs/openapi.ts';

/** The parts of the OpenAPI document that tests read. */
interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

interface Operation {
  readonly operationId: string;
  readonly security: unknown;
  readonly 'x-codeSamples': readonly { readonly lang: string; readonly source: string }[];
  readonly parameters: readonly OrReference<Parameter>[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, OrReference<ResponseObject>>>;
}

interface Parameter {
  readonly name: string;
  readonly in: 'header' | 'path' | 'query';
  readonly required?: boolean;
  readonly schema: object;
}

interface Body {
  readonly content: Readonly<Record<string, MediaType>>;
}

interface MediaType {
  readonly schema: object;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface ResponseObject extends Body {
  readonly headers: Readonly<Record<string, { readonly required?: boolean; readonly schema: { type: string } }>>;
}

type OrReference<Part> = Part | { readonly $ref: string };

/** The gateway's PUBLIC_URL in tests. No test connects to it. */
export const PUBLIC_URL = 'https://leads.example.test';

/** The OpenAPI document of a gateway with that address. */
export const document = openApiDocument(PUBLIC_URL) as OpenApi;

const operations = Object.entries(document.paths).flatMap(([template, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    ...operation,
    method: method.toUpperCase(),
    path: new RegExp(`^${template.replace(/\{\w+\}/, '([^/]+)')}$`),
  })),
);

/** A documented response of an operation. */
interface DocumentedResponse {
  readonly operationId: string;
  readonly status: number;
  /** Undefined for a success. */
  readonly code: string | undefined;
  readonly example: unknown;
}

/** All documented responses. */
export const DOCUMENTED_ANSWERS: readonly DocumentedResponse[] = operations.flatMap(({ operationId, responses }) =>
  Object.entries(responses).flatMap(([status, response]) =>
    Object.values(resolved(response).content).flatMap(({ example, examples = { success: { value: example } } }) =>
      Object.entries(examples).map(([code, { value }]) => ({
        operationId,
        status: Number(status),
        code: Number(status) < 400 ? undefined : code,
        example: value,
      })),
    ),
  ),
);

/** A sent request. */
interface SentRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: Headers;
  readonly body: Uint8Array | undefined;
}

/** Checks that the document allows a request that succeeded. */
export function expectDocumentedRequest({ method, url, headers, body }: SentRequest): void {
  const [path = '', query = ''] = url.split('?');
  const operation = findOperation(method, path);
  if (!operation) return;
  const [, id = ''] = operation.path.exec(path) ?? [];
  const given = {
    query: new URLSearchParams(query),
    header: headers,
    path: new Map([['id', decodeURIComponent(id)]]),
  };
  for (const parameter of operation.parameters.map(resolved)) {
    const value = given[parameter.in].get(parameter.name) ?? undefined;
    if (value !== undefined || parameter.required)
      expectValid(parameter.name, parameter.schema, typed(parameter, value));
  }
  if (operation.requestBody) {
    const json = JSON.parse(new TextDecoder().decode(body));
    expectValid('body', findContent(operation.requestBody, headers).schema, json);
  }
}

/** Checks that a response is documented: its status, headers, media type, body and code. */
export async function expectDocumentedAnswer(method: string, url: string, response: Response): Promise<void> {
  const operation = findOperation(method, url.split('?', 1).join());
  const { status, headers } = response;
  const body = (await response.clone().text()) || undefined;
  if (!operation) {
    // The response is an error that any path can return, or a page outside the API.
    if (status >= 400 && body) expectValid('body', PROBLEM, JSON.parse(body));
    return;
  }
  const documented = operation.responses[status];
  if (!documented) throw new Error(`${operation.operationId} is not documented to return ${status}: ${body}`);
  const answer = resolved(documented);
  const { schema, examples } = findContent(answer, headers);
  const json = JSON.parse(body ?? '');
  expectValid('body', schema, json);
  if (status >= 400) expectDocumentedCode(status, Object.keys(examples ?? {}), json);
  for (const [name, { required, schema }] of Object.entries(answer.headers)) {
    const value = headers.get(name) ?? undefined;
    if (value !== undefined || required) expectValid(name, schema, typed({ schema }, value));
  }
  const known = new Set([...HTTP_HEADERS, ...Object.keys(answer.headers).map((name) => name.toLowerCase())]);
  const unknown = [...headers.keys()].filter((name) => !known.has(name));
  if (unknown.length > 0) throw new Error(`${operation.operationId} ${status} has undocumented headers: ${unknown}`);
}

/** One object for all calls, because validators are cached by object. */
const PROBLEM = { $ref: '#/components/schemas/ProblemDetails' };

const HTTP_HEADERS = ['content-type', 'content-length', 'transfer-encoding', 'date', 'connection', 'keep-alive'];

function findOperation(method: string, path: string) {
  return operations.find((each) => each.method === method && each.path.test(path));
}

/** Checks that a problem has the response's status, and one of the codes in the document's examples. */
function expectDocumentedCode(
  status: number,
  codes: readonly string[],
  problem: { status: number; code: string },
): void {
  if (problem.status !== status) throw new Error(`the body has status ${problem.status}, the response ${status}`);
  if (!codes.includes(problem.code)) throw new Error(`${problem.code} is not documented; documented are ${codes}`);
}

function findContent({ content }: Body, headers: Headers): MediaType {
  const [mediaType = ''] = (headers.get('content-type') ?? '').split(';');
  const found = content[mediaType.toLowerCase()];
  if (!found) throw new Error(`${mediaType} is not documented`);
  return found;
}

function resolved<Part extends object>(part: OrReference<Part>): Part {
  if (!('$ref' in part)) return part;
  const [, , kind = '', name = ''] = part.$ref.split('/');
  return document.components[kind]?.[name] as Part;
}

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
const validators = new Map<object, ValidateFunction>();

/** @throws AssertionError when a value does not match a schema of the document */
export function expectValid(what: string, schema: object, value: unknown): void {
  const validate = validators.get(schema) ?? ajv.compile({ ...schema, components: document.components });
  validators.set(schema, validate);
  if (!validate(value)) assert.fail(`${what} does not match its schema: ${ajv.errorsText(validate.errors)}`);
}

/** Converts the text of a header or parameter to the type of its schema. */
function typed({ schema }: { readonly schema: { readonly type?: string } }, text: string | undefined): unknown {
  return schema.type === 'integer' && /^\d+$/.test(text ?? '') ? Number(text) : text;
}
