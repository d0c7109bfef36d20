import { LEAD_PATH, LEADS_PATH } from '../operations/lead-paths.ts';
import {
  contactSchema,
  contactSchemas,
  leadCaptureSchema,
  leadListSchema,
  leadResponseSchema,
  leadSchema,
  leadStageSchema,
  problemCodeSchema,
  problemDetailsSchema,
} from '../operations/schemas.ts';
import { HEADERS_TOO_LARGE, type Problem, TOO_SLOW } from '../problems.ts';
import { failure } from './answers.ts';
import { exampleOf } from './examples.ts';
import { createLeadOperation, getLeadOperation, listLeadsOperation, requestIdParameter } from './operations.ts';
import { withReferences } from './references.ts';

export const openApiInfo = {
  title: 'Lead Intake API',
  version: '1.0.0',
  summary: 'Sends sales leads into one studio of a CRM and reads them back.',
} as const;

/**
 * Returns the OpenAPI 3.1 document of the public API. Request bodies are validated with its schema of a creation; the
 * HTTP tests validate every response against it.
 *
 * @param publicUrl the address of the gateway for callers
 */
export function openApiDocument(publicUrl: string): object {
  const responses = Object.fromEntries(
    Object.entries(SHARED).map(([name, problems]) => [name, failure(publicUrl, problems)]),
  );
  const ofEveryOperation = Object.fromEntries(
    Object.entries(SHARED).map(([name, [{ status }]]) => [status, responses[name] as object]),
  );
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
        ...Object.fromEntries(contactSchemas.map((schema) => [nameOf(schema), schema])),
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
            'An API key, `lik_…`. Owners and admins of a studio create it in the CRM and choose its scopes; it gives ' +
            'access to that studio only. It is a secret: call from your server, never from a page.',
        },
      },
    },
  });
}

/** `EmailContact`, for example. */
const nameOf = ({ properties }: (typeof contactSchemas)[number]): string =>
  `${properties.type.const.replace(/^./, (first) => first.toUpperCase())}Contact`;

/** The errors of every operation, those of a status together. */
const SHARED: Readonly<Record<string, readonly [Problem, ...Problem[]]>> = {
  KeyInvalid: [exampleOf('integration_key_invalid')],
  Suspended: [exampleOf('subscription_suspended')],
  Forbidden: [exampleOf('integration_scope_forbidden'), exampleOf('integration_issuer_forbidden')],
  TooSlow: [TOO_SLOW],
  RateLimited: [exampleOf('integration_rate_limited')],
  TooLarge: [HEADERS_TOO_LARGE],
  Failed: [exampleOf('internal_error')],
  Unavailable: [exampleOf('integration_rate_unavailable'), exampleOf('integration_unavailable')],
};

const description = (docsUrl: string) => `\
[Quick start](${docsUrl}/quick-start) · [Idempotency and retries](${docsUrl}/retries) · \
[Limits and quota](${docsUrl}/limits) · [Problems](${docsUrl}/problems)

Errors are \`application/problem+json\`. Programs decide by \`code\`; the page at \`type\` says whether anything was written, \
and what to do. In addition to the errors below, any request can get \`route_not_found\` (404) or \`method_not_allowed\` \
(405, with the methods of the path in \`Allow\`), even without a key.`;
