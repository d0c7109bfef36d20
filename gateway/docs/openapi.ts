import { type KeyOperation, SCOPE_OF } from '../../common/rules/public-api.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { findKind, HEADERS_TOO_LARGE, PROBLEM_CODES, type Problem, TOO_SLOW } from '../problems.ts';
import {
  contactSchema,
  contactSchemas,
  cursorSchema,
  LEAD_PATH,
  LEADS_PATH,
  leadCaptureSchema,
  leadListSchema,
  leadResponseSchema,
  leadSchema,
  leadStageSchema,
  limitSchema,
  problemCodeSchema,
  problemDetailsSchema,
  uuidSchema,
} from '../routes/schemas.ts';
import { failure, success } from './answers.ts';
import { codeSamples } from './code-samples.ts';
import { CAPTURE, CURSOR, FULL_CAPTURE, IDEMPOTENCY_KEY, INVALID, LEAD, OLDER_LEAD, toExample } from './examples.ts';

export const openApiInfo = {
  title: 'Lead Intake API',
  version: packageJson.version,
  summary: 'Sends sales leads into one studio of a CRM and reads them back.',
} as const;

/**
 * Returns the OpenAPI 3.1 document of the public API. The gateway validates request bodies with its schema of a creation. The HTTP tests
 * validate every response against it.
 *
 * @param publicUrl the address of the gateway for callers
 */
export const openApiDocument = (publicUrl: string): object => withReferences(wholeDocument(publicUrl));

/** Returns the same document without references: each component is wherever it is used. */
export function wholeDocument(publicUrl: string) {
  const responses = Object.fromEntries(
    Object.entries(SHARED).map(([status, name]) => [name, failure(publicUrl, sharedProblems(Number(status)))]),
  );
  const shared = Object.fromEntries(Object.entries(SHARED).map(([status, name]) => [status, responses[name]]));
  /** Describes an operation with its own errors, and everything that all operations share. */
  const operation = (id: KeyOperation, description: string, { parameters, responses, ...own }: OperationParts) => ({
    operationId: id,
    description: `${description} Requires the scope \`${SCOPE_OF[id]}\`.`,
    tags: ['Leads'],
    security: [{ apiKey: [SCOPE_OF[id]] }],
    'x-codeSamples': codeSamples(publicUrl, id),
    ...own,
    parameters: [...parameters, requestId],
    responses: {
      ...responses,
      ...Object.fromEntries([...ownProblems(id)].map(([status, problems]) => [status, failure(publicUrl, problems)])),
      ...shared,
    },
  });
  return {
    openapi: '3.1.0',
    info: { ...openApiInfo, description: description(`${publicUrl}/docs`) },
    servers: [{ url: publicUrl }],
    tags: [{ name: 'Leads', description: "The leads of the key's studio." }],
    paths: {
      [LEADS_PATH]: {
        post: operation(
          'createLead',
          'Repeating the request with the same `Idempotency-Key` and the same data is safe: there is one lead, and the same response.',
          {
            summary: 'Create a lead',
            parameters: [idempotencyKey],
            requestBody: {
              required: true,
              description: 'JSON in UTF-8, at most 32 KiB, not compressed. Nothing is stripped, coerced or trimmed.',
              content: {
                'application/json': {
                  schema: leadCaptureSchema,
                  examples: {
                    email: { summary: 'A name and an email address', value: CAPTURE },
                    phone: { summary: 'A phone number, with source and note', value: FULL_CAPTURE },
                  },
                },
              },
            },
            responses: {
              201: success(
                'The lead, created by this request or an earlier one.',
                leadResponseSchema,
                { lead: LEAD },
                {
                  always: ['Location'],
                  sometimes: ['Idempotent-Replayed'],
                  links: { lead: { operationId: 'getLead', parameters: { id: '$response.body#/lead/id' } } },
                },
              ),
            },
          },
        ),
        get: operation('listLeads', 'Returns one page of the leads of the studio, newest first.', {
          summary: 'List leads',
          parameters: [limit, cursor],
          responses: {
            200: success('The page.', leadListSchema, { leads: [LEAD, OLDER_LEAD], nextCursor: CURSOR }),
          },
        }),
      },
      [LEAD_PATH.replace(':id', '{id}')]: {
        get: operation('getLead', 'Returns the current state of the lead.', {
          summary: 'Read a lead',
          parameters: [leadId],
          responses: {
            200: success('The lead.', leadResponseSchema, { lead: OLDER_LEAD }),
          },
        }),
      },
    },
    components: {
      schemas: SCHEMAS,
      responses,
      parameters: { RequestId: requestId },
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

/** Returns a name such as `EmailContact`. */
const nameSchema = ({ properties }: (typeof contactSchemas)[number]): string =>
  `${properties.type.const.replace(/^./, (first) => first.toUpperCase())}Contact`;

const SCHEMAS = {
  LeadCapture: leadCaptureSchema,
  Contact: contactSchema,
  ...Object.fromEntries(contactSchemas.map((schema) => [nameSchema(schema), schema])),
  Lead: leadSchema,
  LeadStage: leadStageSchema,
  LeadResponse: leadResponseSchema,
  LeadList: leadListSchema,
  ProblemDetails: problemDetailsSchema,
  ProblemCode: problemCodeSchema,
};

const SECURITY_SCHEMES = {
  apiKey: {
    type: 'http',
    scheme: 'bearer',
    description:
      'An API key, `lik_…`. Owners and admins of a studio create it in the CRM and choose its scopes; it gives ' +
      'access to that studio only. It is a secret: call from your server, never from a page.',
  },
};

/** The parts that differ between operations. */
interface OperationParts {
  readonly summary: string;
  readonly parameters: object[];
  readonly requestBody?: object;
  readonly responses: object;
}

/** Names of the responses that all operations share, by status. */
const SHARED: Readonly<Record<number, string>> = {
  401: 'KeyInvalid',
  402: 'Suspended',
  403: 'Forbidden',
  408: 'TooSlow',
  429: 'RateLimited',
  431: 'TooLarge',
  500: 'Failed',
  503: 'Unavailable',
};

/** Returns the problems with a status that any operation may have. */
const sharedProblems = (status: number): Problem[] =>
  [TOO_SLOW, HEADERS_TOO_LARGE, ...PROBLEM_CODES.map(toExample)].filter((problem) => problem.status === status);

/** Returns an operation's other problems, by status. */
const ownProblems = (id: KeyOperation): Map<number, Problem[]> =>
  Map.groupBy(
    PROBLEM_CODES.filter(
      (code) => (findKind(code).operations ?? [id]).includes(id) && !(findKind(code).status in SHARED),
    ).map((code) => (code === 'integration_invalid_request' ? INVALID[id] : toExample(code))),
    ({ status }) => status,
  );

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: true,
  description: 'Your id for the lead, a UUID: the same in every repetition, a new one for other data.',
  schema: uuidSchema,
  example: IDEMPOTENCY_KEY,
};

const leadId = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The id of the lead, a UUID in any letter case.',
  schema: uuidSchema,
  example: OLDER_LEAD.id,
};

const limit = {
  name: 'limit',
  in: 'query',
  description: 'The maximum number of leads on the page.',
  schema: limitSchema,
};

const cursor = {
  name: 'cursor',
  in: 'query',
  description: 'The `nextCursor` of the previous page, unchanged; without it, the first page is returned.',
  schema: cursorSchema,
};

const requestId = {
  name: 'X-Request-Id',
  in: 'header',
  description:
    'Your id for the request: 1 to 128 letters, digits, dots, underscores and hyphens. Any other value is replaced by ' +
    'a new id.',
  schema: { type: 'string' },
};

const description = (docsUrl: string) => `\
[Quick start](${docsUrl}/quick-start) · [Idempotency and retries](${docsUrl}/retries) · \
[Limits and quota](${docsUrl}/limits) · [Problems](${docsUrl}/problems)

Errors are \`application/problem+json\`. Programs decide by \`code\`; the page at \`type\` says whether anything was written, \
and what to do. In addition to the errors below, any request can get \`route_not_found\` (404) or \`method_not_allowed\` \
(405, with the methods of the path in \`Allow\`), even without a key.`;

/** Replaces each use of a component, which is the same object, by a reference to it. */
function withReferences<Document extends { readonly components: Readonly<Record<string, object>> }>(
  document: Document,
): object {
  const references = new Map<unknown, string>();
  for (const [kind, parts] of Object.entries(document.components)) {
    for (const [name, part] of Object.entries(parts)) references.set(part, `#/components/${kind}/${name}`);
  }
  const replace = (value: unknown): unknown =>
    references.has(value) ? { $ref: references.get(value) } : mapChildren(value, replace);
  const replaceIn = (parts: unknown): unknown => mapChildren(parts, (part) => mapChildren(part, replace));
  return {
    ...(mapChildren(document, replace) as object),
    components: mapChildren(document.components, replaceIn),
  };
}

/** Copies a value with each direct child replaced. */
function mapChildren(value: unknown, change: (child: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(change);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, change(child)]));
}
