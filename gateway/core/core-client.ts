import type { MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { type CoreAccess, type CoreToken, connectToCore } from '../../common/core-connection.ts';
import { CORE_CALL_MS, CORE_HEALTH_MS } from '../../common/deadlines.ts';
import { DRAINING_HEADER } from '../../common/readiness.ts';
import type { TlsCredentials } from '../../common/tls-credentials.ts';
import { currentSpan } from '../../common/tracing.ts';
import { Health, HealthCheckResponse_ServingStatus as Serving } from '../../proto/gen/health/v1/health_pb.ts';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import {
  type CreateLeadItemSchema,
  type ExchangeResult,
  ExchangeService,
} from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { type LoggedRequestSchema, RequestLogService } from '../../proto/gen/leadintake/v1/request_log_pb.ts';
import type { GatewayMetrics } from '../observation.ts';
import { OVERLOADED, Problem } from '../problems.ts';
import type { Operation, Sender } from '../request.ts';
import { problemOfError, problemOfStatus } from './core-problems.ts';
import { ExchangeBatcher, type Item, MAX_PENDING_REQUESTS, type Share } from './exchange-batcher.ts';
import { exchangeOver } from './exchange-calls.ts';

/**
 * The maximum number of one studio's waiting lists, so that no studio makes the lists of others fail. It is a quarter of BUSY_THRESHOLD,
 * from which all lists are refused (`gateway/admission/load-shedding.ts`).
 */
const MAX_WAITING_LISTS_PER_STUDIO = MAX_PENDING_REQUESTS / 8;

/** While the core has yet to answer lists with this many leads, further lists wait, and studios take turns. */
const MAX_SENT_LEADS = 1000;

/** The validated data of a creation. */
export type LeadCreation = MessageInitShape<typeof CreateLeadItemSchema>;

/** An answered request, as the core records it. */
export type RecordedRequest = MessageInitShape<typeof LoggedRequestSchema>;

/** A batch of requests. The core records it once, however often it is sent. */
export interface RequestBatch {
  readonly batchId: string;
  readonly requests: RecordedRequest[];
}

export interface PageToRead {
  readonly limit: number;
  /** Undefined for the first page. */
  readonly cursor: string | undefined;
}

/** A lead that this or an earlier request created. */
export interface Creation {
  readonly body: string;
  readonly leadId: string;
  readonly replayed: boolean;
}

/**
 * The core. Returns response bodies of the public API as text. Every method rejects with the Problem for the caller. The core
 * authenticates the sender on every request, and confines it to its key's studio.
 */
export interface CoreClient {
  authenticate(sender: Sender): Promise<AuthenticateApiKeyResponse>;
  createLead(sender: Sender, creation: LeadCreation): Promise<Creation>;
  getLead(sender: Sender, leadId: string): Promise<string>;
  listLeads(sender: Sender, page: PageToRead): Promise<string>;
  /** Records requests, and returns how many the core skipped. @throws ConnectError */
  recordRequests(batch: RequestBatch): Promise<number>;
  /** Returns the number of pending requests of an operation, or of authentications if that is higher. */
  pending(operation: Operation | undefined): number;
  /** Rejects with the reason unless the core would serve a call now. */
  check(): Promise<void>;
  close(): void;
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly core: CoreClient;
  }
}

/** Creates a client that connects at the first call and reconnects after a loss. */
export function createCoreClient(
  access: CoreAccess,
  credentials: TlsCredentials,
  token: CoreToken,
  metrics: GatewayMetrics | undefined,
): CoreClient {
  const { transport, sessions } = connectToCore(access, credentials, token);
  const exchange = exchangeOver(access.CORE_URL, sessions, token);
  const authenticate = batched('AuthenticateApiKey');
  const createLead = batched('CreateLead');
  const getLead = batched('GetLead');
  const listLeads = batched('ListLeads', MAX_SENT_LEADS);
  const operations: Partial<Record<Operation, typeof createLead>> = { createLead, getLead, listLeads };
  const requestLog = createClient(RequestLogService, transport);
  const health = createClient(Health, transport);

  return {
    authenticate: (sender) => authenticate.send(sender, { case: 'authenticate', value: {} }, bearerIn),

    createLead: (sender, creation) =>
      createLead.send(sender, { case: 'createLead', value: creation }, (result) => {
        const { leadId, replayed } = result;
        return { body: bodyIn(result), leadId, replayed };
      }),

    getLead: (sender, leadId) => getLead.send(sender, { case: 'getLead', value: { leadId } }, bodyIn),

    async listLeads(sender, { limit, cursor }) {
      const { studioId: group = '' } = sender;
      if (listLeads.batcher.countPending(group) >= MAX_WAITING_LISTS_PER_STUDIO) throw OVERLOADED;
      const item = { pageSize: limit, pageToken: cursor ?? '' };
      const share = { group, weight: Math.max(1, limit) };
      return listLeads.send(sender, { case: 'listLeads', value: item }, bodyIn, share);
    },

    recordRequests: async (batch) =>
      (await requestLog.recordRequests({ ...batch }, { timeoutMs: CORE_CALL_MS })).skippedCount,

    pending: (operation = 'other') =>
      Math.max(authenticate.batcher.pending, operations[operation]?.batcher.pending ?? 0),

    async check() {
      let isDraining = false;
      const onHeader = (headers: Headers) => {
        isDraining = headers.has(DRAINING_HEADER);
      };
      const options = { timeoutMs: CORE_HEALTH_MS, onHeader };
      const { status } = await health.check({ service: ExchangeService.typeName }, options).catch((error) => {
        const reason = HEALTH_CHECK_FAULTS[ConnectError.from(error).code];
        throw reason === undefined ? error : new Error(reason, { cause: error });
      });
      // A draining core serves until it closes the connection. The next connection leads to another core.
      if (status !== Serving.SERVING && !isDraining) throw new Error('it reports that it is not serving; see its log');
    },

    close: () => sessions.abort(),
  };

  /** Returns a batcher for an RPC of the core, and a function that sends one request and rejects with the Problem for the caller. */
  function batched(rpc: string, maxSentWeight?: number) {
    const onMessage = (size: number) => metrics?.batchSent(rpc, size);
    // The call has no timeout, because each request has its own.
    const batcher = new ExchangeBatcher(exchange, { timeoutMs: CORE_CALL_MS, maxSentWeight, onMessage });
    metrics?.watchWaiting(rpc, () => batcher.pending);
    return {
      batcher,
      async send<Answer>(
        { secretSha256, requestId }: Sender,
        request: Item['request'] & object,
        read: (result: ExchangeResult) => Answer,
        share?: Share,
      ): Promise<Answer> {
        const span = currentSpan.getStore()?.child(`core ${rpc}`, { requestId });
        const item = { secretSha256, requestId, request, ...(span && { traceparent: span.traceparent }) };
        try {
          const result = await batcher.send(item, share);
          if (result.outcome.case === 'error') throw problemOfStatus(result.outcome.value);
          const answer = read(result);
          span?.end({ failed: false });
          return answer;
        } catch (error) {
          const problem = error instanceof Problem ? error : problemOfError(error);
          span?.end({ failed: problem.status >= 500, attributes: { outcome: problem.code } });
          throw problem;
        }
      },
    };
  }
}

function bearerIn({ outcome }: ExchangeResult): AuthenticateApiKeyResponse {
  if (outcome.case !== 'bearer') throw new Error(`unexpected outcome: ${outcome.case}`);
  return outcome.value;
}

/** Returns text, which Node writes together with the head of a response. Bytes would take a second write. */
function bodyIn({ outcome }: ExchangeResult): string {
  if (outcome.case !== 'body') throw new Error(`unexpected outcome: ${outcome.case}`);
  const { buffer, byteOffset, byteLength } = outcome.value;
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}

/** The reason to report when the health check fails with a code. */
const HEALTH_CHECK_FAULTS: Partial<Record<Code, string>> = {
  [Code.Unauthenticated]:
    'it does not accept this CORE_TOKEN: set the same token, or add the hash of this one to its callers file',
  [Code.PermissionDenied]: 'its callers file does not give this gateway the role `gateway`: add it there',
};
