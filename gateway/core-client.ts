import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import { type CallOptions, Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { CORE_CALL_MS, CORE_HEALTH_MS } from '../common/deadlines.ts';
import { textOfHash } from '../common/rules/key-secret.ts';
import { currentSpan } from '../common/tracing.ts';
import type { Status } from '../proto/gen/google/rpc/status_pb.ts';
import { Health, HealthCheckResponse_ServingStatus as Serving } from '../proto/gen/health/v1/health_pb.ts';
import {
  ApiKeyService,
  type AuthenticateApiKeyRequestSchema,
  type AuthenticateApiKeyResponse,
} from '../proto/gen/leadintake/v1/api_key_pb.ts';
import {
  type CreateLeadRequestSchema,
  type CreateLeadResponse,
  type GetLeadRequestSchema,
  type GetLeadResponse,
  LeadIntakeService,
  type ListLeadsRequestSchema,
  type ListLeadsResponse,
} from '../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { type Asked, Collector, type Result } from './collector.ts';
import type { GatewayConfig } from './config.ts';
import { connectToCore } from './core-connection.ts';
import { problemOfError, problemOfStatus } from './core-problems.ts';
import type { Operation } from './finished-request.ts';
import type { GatewayMetrics } from './metrics.ts';
import { Problem } from './problems.ts';

/**
 * From how many requests of a kind that wait on it is too busy for further ones: half of MOST_UNANSWERED. The rest is for those
 * that were let in before that, and are on their way.
 *
 * @rule 7.overload
 */
const BUSY_FROM = 1024;

/**
 * How long creations are gathered at most while the message before has no result yet; milliseconds. Below its full load a
 * core would else be given them one by one, and take half as long again for each. Reads gain nothing: the core answers them
 * sooner than others come.
 */
const GATHER_MS = 5;

/** What a caller sends to create a lead, checked against the contract. */
export interface LeadCreation {
  readonly idempotencyKey: string;
  readonly displayName: string;
  readonly contact: { readonly type: 'email' | 'phone'; readonly value: string };
  readonly sourceId: string | null;
  readonly note: string | null;
}

/** On whose behalf the core is asked, and for which request, so that both sides' logs can be joined. */
export interface Bearer {
  /** Hash of the API key's secret; 32 bytes. */
  readonly secretSha256: Uint8Array;
  readonly requestId: string;
}

/**
 * The core, as the gateway uses it. Every method rejects with the Problem that the caller is to be told. The core
 * authenticates the bearer first, whatever it is asked for: what they may touch is the studio of the key.
 */
export interface CoreClient {
  authenticate(bearer: Bearer): Promise<AuthenticateApiKeyResponse>;
  createLead(bearer: Bearer, capture: LeadCreation): Promise<CreateLeadResponse>;
  getLead(bearer: Bearer, leadId: string): Promise<GetLeadResponse>;
  /** @param cursor undefined for the first page */
  listLeads(
    bearer: Bearer,
    page: { readonly limit: number; readonly cursor: string | undefined },
  ): Promise<ListLeadsResponse>;
  /** Whether so many requests of this kind wait for the core that a further one had better not begin. */
  isBusy(operation: Operation | undefined): boolean;
  /** Rejects, saying why, unless the core would serve a call now. */
  check(): Promise<void>;
  /** Lets go of the connection. */
  close(): void;
}

/** Connects to a core, at the first call and again whenever the connection is lost. */
export function createCoreClient(config: GatewayConfig, metrics?: GatewayMetrics): CoreClient {
  const { transport, sessions } = connectToCore(config);
  const { authenticate, create, get, list } = collectors(transport, metrics);
  const health = createClient(Health, transport);
  const operations: Partial<Record<Operation, { unanswered(): number }>> = {
    createLead: create,
    getLead: get,
    listLeads: list,
  };
  /** How many wait for their key to be looked up, whether they share that or not. */
  let authenticating = 0;

  return {
    // Whoever comes with the same key in the same turn is told the same, and nobody what was true before.
    authenticate({ secretSha256, requestId }) {
      authenticating += 1;
      return authenticate.ask({ message: { secretSha256 } }, requestId, textOfHash(secretSha256)).finally(() => {
        authenticating -= 1;
      });
    },

    createLead: ({ secretSha256, requestId }, { contact, sourceId, note, ...rest }) =>
      create.ask(
        {
          secretSha256,
          message: {
            ...rest,
            contact: { value: { case: contact.type, value: contact.value } },
            ...(sourceId !== null && { sourceId }),
            ...(note !== null && { note }),
          },
        },
        requestId,
      ),

    getLead: ({ secretSha256, requestId }, leadId) => get.ask({ secretSha256, message: { leadId } }, requestId),

    listLeads: ({ secretSha256, requestId }, { limit, cursor }) =>
      list.ask({ secretSha256, message: { pageSize: limit, pageToken: cursor ?? '' } }, requestId),

    isBusy: (operation = 'other') => authenticating + (operations[operation]?.unanswered() ?? 0) >= BUSY_FROM,

    async check() {
      const { status } = await health.check({}, { timeoutMs: CORE_HEALTH_MS }).catch((error) => {
        const { code } = ConnectError.from(error);
        throw code === Code.Unauthenticated ? new Error('it does not take this CORE_TOKEN', { cause: error }) : error;
      });
      if (status !== Serving.SERVING) throw new Error('it says that it does not serve: its log tells why');
    },

    close: () => sessions.abort(),
  };
}

/** What gathers the requests of each kind for the core. */
function collectors(transport: Transport, metrics: GatewayMetrics | undefined) {
  const leads = createClient(LeadIntakeService, transport);
  const apiKeys = createClient(ApiKeyService, transport);
  const authenticate = collect<typeof AuthenticateApiKeyRequestSchema, AuthenticateApiKeyResponse>(
    apiKeys.batchAuthenticateApiKeys,
    { operation: 'AuthenticateApiKey', mostInMessage: 64, metrics },
  );
  const create = collect<typeof CreateLeadRequestSchema, CreateLeadResponse>(leads.batchCreateLeads, {
    operation: 'CreateLead',
    mostInMessage: 24,
    gatherMs: GATHER_MS,
    metrics,
  });
  const get = collect<typeof GetLeadRequestSchema, GetLeadResponse>(leads.batchGetLeads, {
    operation: 'GetLead',
    mostInMessage: 32,
    metrics,
  });
  const list = collect<typeof ListLeadsRequestSchema, ListLeadsResponse>(leads.batchListLeads, {
    operation: 'ListLeads',
    mostInMessage: 4,
    metrics,
  });
  return { authenticate, create, get, list };
}

/** A batch method of the core. */
type BatchRpc<Schema extends DescMessage, Answer> = (
  batches: AsyncIterable<{ requests: MessageInitShape<Schema>[]; requestIds: string[]; traceparents?: string[] }>,
  options: CallOptions,
) => AsyncIterable<{ readonly results: readonly BatchResult<Answer>[] }>;

interface BatchResult<Answer> {
  readonly index: number;
  readonly outcome:
    | { readonly case: 'response'; readonly value: Answer }
    | { readonly case: 'error'; readonly value: Status }
    | { readonly case: undefined; readonly value?: undefined };
}

/** How requests of one kind go to the core. */
interface Collecting {
  /** What the core calls one of them. */
  readonly operation: string;
  /**
   * How many go into one message. The core answers one message while the gateway works on the answers to the one before, so
   * what takes long goes in small ones: creations in no larger ones than it takes to share what a commit costs.
   */
  readonly mostInMessage: number;
  /** How long they are gathered, at most, while the message before has no result yet; milliseconds. */
  readonly gatherMs?: number;
  readonly metrics: GatewayMetrics | undefined;
}

/** A request, and the key that it came with, where that is not the request itself. */
interface Sent<Schema extends DescMessage> {
  readonly message: MessageInitShape<Schema>;
  readonly secretSha256?: Uint8Array;
}

const NO_SECRET = new Uint8Array();

/** Collects requests for a batch method. Each rejects with the Problem that its caller is to be told. */
function collect<Schema extends DescMessage, Answer>(
  rpc: BatchRpc<Schema, Answer>,
  { operation, mostInMessage, gatherMs, metrics }: Collecting,
) {
  const collector = new Collector<Sent<Schema>, Answer>(
    async function* (messages) {
      // Each request has a deadline, the call has none.
      for await (const { results } of rpc(batches(messages), { timeoutMs: 0 })) yield results.map(resultOf);
    },
    { timeoutMs: CORE_CALL_MS, mostInMessage, gatherMs },
  );
  metrics?.watchWaiting(operation, () => collector.unanswered);
  const ask = async (request: Sent<Schema>, requestId: string, sharedAs?: string): Promise<Answer> => {
    const span = currentSpan.getStore()?.child(`core ${operation}`, { requestId });
    try {
      const answer = await collector.ask(request, requestId, sharedAs, span);
      span?.end({ failed: false });
      return answer;
    } catch (error) {
      const problem = error instanceof Problem ? error : problemOfError(error);
      span?.end({ failed: problem.status >= 500, attributes: { outcome: problem.code } });
      throw problem;
    }
  };
  return { ask, unanswered: () => collector.unanswered };

  async function* batches(messages: AsyncIterable<readonly Asked<Sent<Schema>>[]>) {
    for await (const message of messages) {
      metrics?.batchSent(operation, message.length);
      yield {
        requests: message.map(({ request }) => request.message),
        requestIds: message.map(({ requestId }) => requestId),
        // Either all of them come with a key, or none; so it is with traces.
        ...(message[0]?.request.secretSha256 !== undefined && {
          secretSha256s: message.map(({ request: { secretSha256 = NO_SECRET } }) => secretSha256),
        }),
        ...(message[0]?.span !== undefined && {
          traceparents: message.map(({ span }) => span?.traceparent ?? ''),
        }),
      };
    }
  }
}

function resultOf<Answer>({ index, outcome }: BatchResult<Answer>): Result<Answer> {
  switch (outcome.case) {
    case 'response':
      return { index, answer: outcome.value };
    case 'error':
      return { index, error: problemOfStatus(outcome.value) };
    default:
      return { index, error: new Error('a result without an outcome') };
  }
}
