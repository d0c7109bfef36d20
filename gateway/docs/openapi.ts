import { invalidRequest, type Problem } from '../problems.ts';
import { LEAD_PATH, LEADS_PATH } from '../routes/leads.ts';
import {
  cursorSchema,
  emailContactSchema,
  leadCaptureSchema,
  leadListSchema,
  leadResponseSchema,
  leadSchema,
  limitSchema,
  phoneContactSchema,
  problemDetailsSchema,
  uuidSchema,
} from '../routes/schemas.ts';
import { failure, success } from './answers.ts';
import { CAPTURE, CURSOR, exampleOf, FULL_CAPTURE, IDEMPOTENCY_KEY, INVALID, LEAD, OLDER_LEAD } from './examples.ts';
import { withReferences } from './references.ts';

/**
 * The OpenAPI 3.1 document of the public API. Its schema of a creation is the one that bodies are checked with; what it
 * says of answers is held against every answer that the HTTP tests get.
 *
 * @param publicUrl where callers reach the gateway
 */
export function openApiDocument(publicUrl: string): object {
  const problems = (...all: [Problem, ...Problem[]]) => failure(publicUrl, all);
  const responses = {
    KeyInvalid: problems(exampleOf('integration_key_invalid')),
    Suspended: problems(exampleOf('subscription_suspended')),
    Forbidden: problems(exampleOf('integration_scope_forbidden'), exampleOf('integration_issuer_forbidden')),
    TooSlow: problems(invalidRequest([], 'The request did not arrive in time.', 408)),
    RateLimited: problems(exampleOf('integration_rate_limited')),
    TooLarge: problems(invalidRequest([], 'The headers are too large.', 431)),
    Failed: problems(exampleOf('internal_error')),
    Unavailable: problems(exampleOf('integration_rate_unavailable'), exampleOf('integration_unavailable')),
  };
  const ofEveryOperation = {
    401: responses.KeyInvalid,
    402: responses.Suspended,
    403: responses.Forbidden,
    408: responses.TooSlow,
    429: responses.RateLimited,
    431: responses.TooLarge,
    500: responses.Failed,
    503: responses.Unavailable,
  };

  const createLead = {
    operationId: 'createLead',
    summary: 'Create a lead',
    description:
      'Repeat the request with the same `Idempotency-Key` and the same data as often as you like: there is one lead, ' +
      'and the same answer. Needs the scope `leads.create`.',
    tags: ['Leads'],
    security: [{ apiKey: ['leads.create'] }],
    parameters: [idempotencyKeyParameter, requestIdParameter],
    requestBody: {
      required: true,
      description: 'JSON in UTF-8, at most 32 KiB, not packed. Nothing is stripped, coerced or trimmed.',
      content: {
        'application/json': {
          schema: leadCaptureSchema,
          examples: {
            email: { summary: 'A name and an e-mail address', value: CAPTURE },
            phone: { summary: 'A phone number, with source and note', value: FULL_CAPTURE },
          },
        },
      },
    },
    responses: {
      201: success(
        'The lead. This request created it, or an earlier one did.',
        leadResponseSchema,
        { lead: LEAD },
        {
          sometimes: ['Idempotent-Replayed'],
          links: { lead: { operationId: 'getLead', parameters: { id: '$response.body#/lead/id' } } },
        },
      ),
      400: problems(INVALID.createLead, exampleOf('integration_source_invalid')),
      409: problems(exampleOf('integration_idempotency_conflict'), exampleOf('integration_lead_already_open')),
      ...ofEveryOperation,
    },
  };

  const getLead = {
    operationId: 'getLead',
    summary: 'Read a lead',
    description: 'The lead as it stands. Needs the scope `leads.read`.',
    tags: ['Leads'],
    security: [{ apiKey: ['leads.read'] }],
    parameters: [idParameter, requestIdParameter],
    responses: {
      200: success('The lead.', leadResponseSchema, { lead: OLDER_LEAD }),
      400: problems(INVALID.getLead),
      404: problems(exampleOf('integration_lead_not_found')),
      ...ofEveryOperation,
    },
  };

  const listLeads = {
    operationId: 'listLeads',
    summary: 'List leads',
    description: 'One page of the leads of the studio, newest first. Needs the scope `leads.read`.',
    tags: ['Leads'],
    security: [{ apiKey: ['leads.read'] }],
    parameters: [limitParameter, cursorParameter, requestIdParameter],
    responses: {
      200: success('The page.', leadListSchema, { leads: [LEAD, OLDER_LEAD], nextCursor: CURSOR }),
      400: problems(INVALID.listLeads),
      ...ofEveryOperation,
    },
  };

  return withReferences({
    openapi: '3.1.0',
    info: {
      title: 'Lead Intake API',
      version: '1.0.0',
      summary: 'Sends sales leads into one studio of a CRM and reads them back.',
      description: description(`${publicUrl}/docs`),
    },
    servers: [{ url: publicUrl }],
    tags: [{ name: 'Leads', description: "The leads of the key's studio." }],
    paths: {
      [LEADS_PATH]: { post: createLead, get: listLeads },
      [LEAD_PATH.replace(':id', '{id}')]: { get: getLead },
    },
    components: {
      schemas: {
        LeadCapture: leadCaptureSchema,
        EmailContact: emailContactSchema,
        PhoneContact: phoneContactSchema,
        Lead: leadSchema,
        LeadResponse: leadResponseSchema,
        LeadList: leadListSchema,
        ProblemDetails: problemDetailsSchema,
      },
      responses,
      parameters: { RequestId: requestIdParameter },
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API key, `lik_…`. Owners and admins of a studio create it in the CRM and choose its scopes; it opens ' +
            'that studio only. It is a secret: call from your server, never from a page.',
        },
      },
    },
  });
}

const idempotencyKeyParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: true,
  description: 'Your own id for the lead: the same in every repetition, another one for other data.',
  schema: uuidSchema,
  example: IDEMPOTENCY_KEY,
};

const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The id of the lead, in any letter case.',
  schema: uuidSchema,
  example: OLDER_LEAD.id,
};

const limitParameter = {
  name: 'limit',
  in: 'query',
  description: 'How many leads the page may have.',
  schema: limitSchema,
};

const cursorParameter = {
  name: 'cursor',
  in: 'query',
  description: 'The `nextCursor` of the page before, unchanged; without it the first page is answered.',
  schema: cursorSchema,
};

const requestIdParameter = {
  name: 'X-Request-Id',
  in: 'header',
  description:
    'Your own name for the request. It is kept when it has 1 to 128 letters, digits, dots, underscores and hyphens; ' +
    'else the request gets a new one.',
  schema: { type: 'string' },
};

const description = (docsUrl: string) => `\
[Quick start](${docsUrl}/quick-start) · [Idempotency and retries](${docsUrl}/retries) · \
[Limits and quota](${docsUrl}/limits) · [Problems](${docsUrl}/problems)

Errors are \`application/problem+json\`. Decide by their \`code\`; the page that their \`type\` leads to says whether \
anything was written, and what to do. Beside those below there are two that need no key: \`route_not_found\` (404), and \
\`method_not_allowed\` (405), which names the methods of the path in \`Allow\`.`;
