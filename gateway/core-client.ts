import { Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { BadRequestSchema, ErrorInfoSchema } from '../proto/gen/google/rpc/error_details_pb.ts';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../proto/gen/health/v1/health_pb.ts';
import { ApiKeyService, type AuthenticateApiKeyResponse } from '../proto/gen/leadintake/v1/api_key_pb.ts';
import {
  type CreateLeadResponse,
  type GetLeadResponse,
  LeadIntakeService,
  type ListLeadsResponse,
} from '../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Secret } from '../src/runtime/secret.ts';
import type { GatewayConfig } from './config.ts';
import { CODE_OF_REASON, type FieldFault, Problem } from './problems.ts';

/** How long a call to the core may take before its outcome counts as unknown; milliseconds. */
const TIMEOUT_MS = 5000;

/** How long the core may take to say whether it is ready; milliseconds. */
const HEALTH_TIMEOUT_MS = 1000;

/** The largest answer to read; 100 leads with the longest texts have about 1 MB. */
const LARGEST_MESSAGE_BYTES = 4 * 1024 * 1024;

/** What a caller sends to create a lead, checked against the contract. */
export interface LeadCapture {
  readonly idempotencyKey: string;
  readonly displayName: string;
  readonly contact: { readonly type: 'email' | 'phone'; readonly value: string };
  readonly sourceId: string | null;
  readonly note: string | null;
}

/**
 * The core, as the gateway uses it. Every method rejects with the Problem that the caller is to be told; the request id
 * goes along, so that both sides' logs can be joined.
 */
export interface CoreClient {
  /** @param secretSha256 hash of the API key's secret; 32 bytes */
  authenticate(secretSha256: Uint8Array, requestId: string): Promise<AuthenticateApiKeyResponse>;
  createLead(studioId: string, capture: LeadCapture, requestId: string): Promise<CreateLeadResponse>;
  getLead(studioId: string, leadId: string, requestId: string): Promise<GetLeadResponse>;
  /** @param cursor undefined for the first page */
  listLeads(
    studioId: string,
    page: { readonly limit: number; readonly cursor: string | undefined },
    requestId: string,
  ): Promise<ListLeadsResponse>;
  /** Whether the core would serve a call now; never rejects. */
  isServing(): Promise<boolean>;
  /** Lets go of the connection. */
  close(): void;
}

/** Connects to a core, at the first call and again whenever the connection is lost. */
export function createCoreClient(config: GatewayConfig): CoreClient {
  const { CORE_URL, CORE_CA_FILE, CORE_CLIENT_CERT_FILE, CORE_CLIENT_KEY_FILE } = config;
  const sessionManager = new Http2SessionManager(
    CORE_URL,
    // A core that is gone without a word is noticed by a ping, not by the operating system's patience.
    { pingIntervalMs: 10_000, pingTimeoutMs: 2000 },
    {
      ...(CORE_CA_FILE && { ca: CORE_CA_FILE }),
      ...(CORE_CLIENT_CERT_FILE && { cert: CORE_CLIENT_CERT_FILE }),
      ...(CORE_CLIENT_KEY_FILE && { key: CORE_CLIENT_KEY_FILE.reveal() }),
    },
  );
  const transport = createConnectTransport({
    baseUrl: CORE_URL,
    httpVersion: '2',
    useBinaryFormat: true,
    sessionManager,
    readMaxBytes: LARGEST_MESSAGE_BYTES,
    defaultTimeoutMs: TIMEOUT_MS,
    interceptors: config.CORE_TOKEN ? [presentToken(config.CORE_TOKEN)] : [],
  });
  const leads = createClient(LeadIntakeService, transport);
  const apiKeys = createClient(ApiKeyService, transport);
  const health = createClient(Health, transport);

  return {
    authenticate: (secretSha256, requestId) => asked(apiKeys.authenticateApiKey({ secretSha256 }, joined(requestId))),

    createLead: (studioId, { contact, sourceId, note, ...rest }, requestId) =>
      asked(
        leads.createLead(
          {
            studioId,
            ...rest,
            contact: { value: { case: contact.type, value: contact.value } },
            ...(sourceId !== null && { sourceId }),
            ...(note !== null && { note }),
          },
          joined(requestId),
        ),
      ),

    getLead: (studioId, leadId, requestId) => asked(leads.getLead({ studioId, leadId }, joined(requestId))),

    listLeads: (studioId, { limit, cursor }, requestId) =>
      asked(leads.listLeads({ studioId, pageSize: limit, pageToken: cursor ?? '' }, joined(requestId))),

    isServing: () =>
      health.check({}, { timeoutMs: HEALTH_TIMEOUT_MS }).then(
        ({ status }) => status === Status.SERVING,
        () => false,
      ),

    close: () => sessionManager.abort(),
  };
}

function presentToken(token: Secret): Interceptor {
  const authorization = `Bearer ${token.reveal()}`;
  return (next) => (request) => {
    request.header.set('authorization', authorization);
    return next(request);
  };
}

const joined = (requestId: string) => ({ headers: { 'x-request-id': requestId } });

async function asked<Answer>(call: Promise<Answer>): Promise<Answer> {
  try {
    return await call;
  } catch (error) {
    throw problemOf(ConnectError.from(error));
  }
}

/** What the core itself may say, without a reason, of a fault on either side. After anything else the outcome is unknown. */
const FAULTS = new Set([Code.Internal, Code.Unimplemented, Code.InvalidArgument, Code.Unauthenticated]);

function problemOf(error: ConnectError): Problem {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === 'leadintake');
  const code = Object.hasOwn(CODE_OF_REASON, info?.reason ?? '')
    ? CODE_OF_REASON[info?.reason as keyof typeof CODE_OF_REASON]
    : undefined;
  if (code === undefined) {
    // What has a cause was not said by the core: a call that is cut off is called internal too.
    const isFault = error.cause === undefined && FAULTS.has(error.code);
    return new Problem(isFault ? 'internal_error' : 'integration_unavailable', { cause: error });
  }
  const faults = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations.map(publicFault));
  return new Problem(code, { faults, existingLeadId: info?.metadata.leadId, cause: error });
}

/** What the core calls by one name and the public API by another. */
const PUBLIC_NAMES: Readonly<Record<string, string>> = {
  idempotencyKey: 'Idempotency-Key',
  'contact.email': 'contact.value',
  'contact.phone': 'contact.value',
  leadId: 'id',
  pageSize: 'limit',
  pageToken: 'cursor',
};

function publicFault({ field, description }: { field: string; description: string }): FieldFault {
  return { field: PUBLIC_NAMES[field] ?? field, message: description };
}
