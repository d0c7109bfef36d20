import { LEAD_PATH, LEADS_PATH } from '../lead-paths.ts';
import { invalidRequest, type Problem } from '../problems.ts';
import {
  contactSchema,
  emailContactSchema,
  leadCaptureSchema,
  leadListSchema,
  leadResponseSchema,
  leadSchema,
  leadStageSchema,
  phoneContactSchema,
  problemCodeSchema,
  problemDetailsSchema,
} from '../schemas.ts';
import { failure } from './answers.ts';
import { exampleOf } from './examples.ts';
import { createLeadOperation, getLeadOperation, listLeadsOperation } from './operations.ts';
import { requestIdParameter } from './parameters.ts';
import { withReferences } from './references.ts';

/** What the API is called, and what it is for. */
export const openApiInfo = {
  title: 'Lead Intake API',
  version: '1.0.0',
  summary: 'Sends sales leads into one studio of a CRM and reads them back.',
} as const;

/**
 * The OpenAPI 3.1 document of the public API. Its schema of a creation is the one that bodies are checked with; what it
 * says of answers is held against every answer that the HTTP tests get.
 *
 * @param publicUrl where callers reach the gateway
 */
export function openApiDocument(publicUrl: string): object {
  const responses = sharedResponses(publicUrl);
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
  return withReferences({
    openapi: '3.1.0',
    info: { ...openApiInfo, description: description(`${publicUrl}/docs`) },
    servers: [{ url: publicUrl }],
    tags: [{ name: 'Leads', description: "The leads of the key's studio." }],
    paths: {
      [LEADS_PATH]: {
        post: createLeadOperation(publicUrl, ofEveryOperation),
        get: listLeadsOperation(publicUrl, ofEveryOperation),
      },
      [LEAD_PATH.replace(':id', '{id}')]: { get: getLeadOperation(publicUrl, ofEveryOperation) },
    },
    components: {
      schemas: {
        LeadCapture: leadCaptureSchema,
        Contact: contactSchema,
        EmailContact: emailContactSchema,
        PhoneContact: phoneContactSchema,
        Lead: leadSchema,
        LeadStage: leadStageSchema,
        LeadResponse: leadResponseSchema,
        LeadList: leadListSchema,
        ProblemDetails: problemDetailsSchema,
        ProblemCode: problemCodeSchema,
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

/** The errors that every operation may answer with, each status once. */
function sharedResponses(publicUrl: string) {
  const problems = (...all: [Problem, ...Problem[]]) => failure(publicUrl, all);
  return {
    KeyInvalid: problems(exampleOf('integration_key_invalid')),
    Suspended: problems(exampleOf('subscription_suspended')),
    Forbidden: problems(exampleOf('integration_scope_forbidden'), exampleOf('integration_issuer_forbidden')),
    TooSlow: problems(invalidRequest([], 'The request did not arrive in time.', 408)),
    RateLimited: problems(exampleOf('integration_rate_limited')),
    TooLarge: problems(invalidRequest([], 'The headers are too large.', 431)),
    Failed: problems(exampleOf('internal_error')),
    Unavailable: problems(exampleOf('integration_rate_unavailable'), exampleOf('integration_unavailable')),
  };
}

const description = (docsUrl: string) => `\
[Quick start](${docsUrl}/quick-start) · [Idempotency and retries](${docsUrl}/retries) · \
[Limits and quota](${docsUrl}/limits) · [Problems](${docsUrl}/problems)

Errors are \`application/problem+json\`. Decide by their \`code\`; the page that their \`type\` leads to says whether \
anything was written, and what to do. Beside those below there are two that need no key: \`route_not_found\` (404), and \
\`method_not_allowed\` (405), which names the methods of the path in \`Allow\`.`;
