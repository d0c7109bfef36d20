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
 * The number of waiting lists of one studio from which further ones are refused, so that no studio makes the others' fail: a quarter of
 * those from which all are (`gateway/admission/load-shedding.ts`).
 */
const MAX_WAITING_LISTS_PER_STUDIO = MAX_PENDING_REQUESTS / 8;

/** The number of leads in lists that are sent and not answered from which lists wait, and studios take turns. */
const MAX_SENT_LEADS = 1000;

/** The validated data of a creation. */
export type LeadCreation = MessageInitShape<typeof CreateLeadItemSchema>;

/** A request that was answered, as the core records it. */
export type RecordedRequest = MessageInitShape<typeof LoggedRequestSchema>;

/** It is recorded once, however often it is sent. */
export interface RequestBatch {
  readonly batchId: string;
  readonly requests: RecordedRequest[];
}

export interface PageToRead {
  readonly limit: number;
  /** Undefined for the first page. */
  readonly cursor: string | undefined;
}

/** A successful outcome, and what a creation has besides. */
type Answer<Case> = Pick<ExchangeResult, 'leadId' | 'replayed'> & {
  readonly value: Extract<ExchangeResult['outcome'], { readonly case: Case }>['value'];
};

/**
 * The core. It returns the response bodies of the public API as bytes. Every method rejects with the Problem for the
 * caller. The core authenticates the sender on every request, and confines it to the studio of the key.
 */
export interface CoreClient {
  authenticate(sender: Sender): Promise<AuthenticateApiKeyResponse>;
  /** Returns the body, the id of the lead, and whether an earlier request had created it. */
  createLead(sender: Sender, creation: LeadCreation): Promise<Answer<'body'>>;
  getLead(sender: Sender, leadId: string): Promise<Uint8Array>;
  listLeads(sender: Sender, page: PageToRead): Promise<Uint8Array>;
  /** Returns the number of requests that were skipped. @throws ConnectError */
  recordRequests(batch: RequestBatch): Promise<number>;
  /** Returns the number of pending requests of an operation, or of authentications if they are more. */
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
  const authenticate = batched('AuthenticateApiKey', 'bearer');
  const createLead = batched('CreateLead', 'body');
  const getLead = batched('GetLead', 'body');
  const listLeads = batched('ListLeads', 'body', MAX_SENT_LEADS);
  const operations: Partial<Record<Operation, typeof createLead>> = { createLead, getLead, listLeads };
  const requestLog = createClient(RequestLogService, transport);
  const health = createClient(Health, transport);

  return {
    authenticate: async (sender) => (await authenticate.send(sender, { case: 'authenticate', value: {} })).value,

    createLead: (sender, creation) => createLead.send(sender, { case: 'createLead', value: creation }),

    getLead: async (sender, leadId) => (await getLead.send(sender, { case: 'getLead', value: { leadId } })).value,

    async listLeads(sender, { limit, cursor }) {
      const { studioId: group = '' } = sender;
      if (listLeads.batcher.countPending(group) >= MAX_WAITING_LISTS_PER_STUDIO) throw OVERLOADED;
      const item = { pageSize: limit, pageToken: cursor ?? '' };
      const share = { group, weight: Math.max(1, limit) };
      return (await listLeads.send(sender, { case: 'listLeads', value: item }, share)).value;
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
      // A core that drains serves until it closes the connection; the next one leads to another core.
      if (status !== Serving.SERVING && !isDraining) throw new Error('it reports that it is not serving; see its log');
    },

    close: () => sessions.abort(),
  };

  /** Returns a batcher of the requests for an RPC of the core, and a function that sends one and rejects with the Problem for the caller. */
  function batched<Case extends 'bearer' | 'body'>(rpc: string, expected: Case, maxSentWeight?: number) {
    const onMessage = (size: number) => metrics?.batchSent(rpc, size);
    // Each request has a timeout of its own, so the call has none.
    const batcher = new ExchangeBatcher(exchange, { timeoutMs: CORE_CALL_MS, maxSentWeight, onMessage });
    metrics?.watchWaiting(rpc, () => batcher.pending);
    return {
      batcher,
      async send({ secretSha256, requestId }: Sender, request: Item['request'] & object, share?: Share) {
        const span = currentSpan.getStore()?.child(`core ${rpc}`, { requestId });
        const item = { secretSha256, requestId, request, ...(span && { traceparent: span.traceparent }) };
        try {
          const { outcome, leadId, replayed } = await batcher.send(item, share);
          if (outcome.case === 'error') throw problemOfStatus(outcome.value);
          if (outcome.case !== expected) throw new Error(`unexpected outcome: ${outcome.case}`);
          span?.end({ failed: false });
          return { value: outcome.value as Answer<Case>['value'], leadId, replayed };
        } catch (error) {
          const problem = error instanceof Problem ? error : problemOfError(error);
          span?.end({ failed: problem.status >= 500, attributes: { outcome: problem.code } });
          throw problem;
        }
      },
    };
  }
}

/** The meaning of an error of the health check. */
const HEALTH_CHECK_FAULTS: Partial<Record<Code, string>> = {
  [Code.Unauthenticated]:
    'it does not accept this CORE_TOKEN: set the same token, or add the hash of this one to its callers file',
  [Code.PermissionDenied]: 'its callers file does not give this gateway the role `gateway`: add it there',
};
