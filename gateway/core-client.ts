import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Client, Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { CORE_CALL_MS, CORE_HEALTH_MS } from '../common/deadlines.ts';
import { textOfHash } from '../common/rules/key-secret.ts';
import type { TlsCredentials } from '../common/tls-credentials.ts';
import { currentSpan } from '../common/tracing.ts';
import { Health, HealthCheckResponse_ServingStatus as Serving } from '../proto/gen/health/v1/health_pb.ts';
import type { AuthenticateApiKeyResponse } from '../proto/gen/leadintake/v1/api_key_pb.ts';
import {
  type ExchangeItemSchema,
  type ExchangeResult,
  ExchangeService,
} from '../proto/gen/leadintake/v1/exchange_pb.ts';
import type { GatewayConfig } from './config.ts';
import { connectToCore } from './core-connection.ts';
import { problemOfError, problemOfStatus } from './core-problems.ts';
import { isUnseen } from './core-sessions.ts';
import type { CoreToken } from './core-token.ts';
import { type Asked as Asking, ExchangeBatcher, type Result } from './exchange-batcher.ts';
import type { Operation } from './finished-request.ts';
import type { GatewayMetrics } from './metrics.ts';
import { Problem } from './problems.ts';

/**
 * From how many requests of a kind that wait on it is too busy for further ones: half of MAX_PENDING_REQUESTS. The rest is for those
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

/** A lead that was created: the body that tells of it, its id, and whether an earlier request had made it. */
export interface Creation {
  readonly body: Uint8Array;
  readonly leadId: string;
  readonly replayed: boolean;
}

/**
 * The core, as the gateway uses it. What the public API answers with comes from it as the body's bytes. Every method rejects
 * with the Problem that the caller is to be told. The core authenticates the bearer first, whatever it is asked for: what they
 * may touch is the studio of the key.
 */
export interface CoreClient {
  authenticate(bearer: Bearer): Promise<AuthenticateApiKeyResponse>;
  createLead(bearer: Bearer, capture: LeadCreation): Promise<Creation>;
  getLead(bearer: Bearer, leadId: string): Promise<Uint8Array>;
  /** @param cursor undefined for the first page */
  listLeads(bearer: Bearer, page: { readonly limit: number; readonly cursor: string | undefined }): Promise<Uint8Array>;
  /** Whether so many requests of this kind wait for the core that a further one had better not begin. */
  isBusy(operation: Operation | undefined): boolean;
  /** Rejects, saying why, unless the core would serve a call now. */
  check(): Promise<void>;
  /** Lets go of the connection. */
  close(): void;
}

/** Connects to a core, at the first call and again whenever the connection is lost. */
export function createCoreClient(
  config: GatewayConfig,
  credentials: TlsCredentials,
  token: CoreToken,
  metrics: GatewayMetrics | undefined,
): CoreClient {
  const { transport, sessions } = connectToCore(config, credentials, token);
  const { authenticate, create, get, list } = collectors(transport, metrics);
  const health = createClient(Health, transport);
  const operations: Partial<Record<Operation, { unanswered(): number }>> = {
    createLead: create,
    getLead: get,
    listLeads: list,
  };
  /** How many wait for their key to be looked up, whether they share that or not. */
  let authenticating = 0;
  // Those, and not the few that are asked for all of them: whoever looks wants to know how many wait.
  metrics?.watchWaiting('AuthenticateApiKey', () => authenticating);

  return {
    // Whoever comes with the same key in the same turn is told the same, and nobody what was true before.
    async authenticate(bearer) {
      authenticating += 1;
      try {
        const { secretSha256 } = bearer;
        return (await authenticate.ask(bearer, { case: 'authenticate', value: {} }, textOfHash(secretSha256))).value;
      } finally {
        authenticating -= 1;
      }
    },

    async createLead(bearer, { contact, sourceId, note, ...rest }) {
      const item = {
        ...rest,
        contact: { value: { case: contact.type, value: contact.value } },
        ...(sourceId !== null && { sourceId }),
        ...(note !== null && { note }),
      };
      const { value: body, leadId, replayed } = await create.ask(bearer, { case: 'createLead', value: item });
      return { body, leadId, replayed };
    },

    getLead: async (bearer, leadId) => (await get.ask(bearer, { case: 'getLead', value: { leadId } })).value,

    async listLeads(bearer, { limit, cursor }) {
      const item = { pageSize: limit, pageToken: cursor ?? '' };
      return (await list.ask(bearer, { case: 'listLeads', value: item })).value;
    },

    isBusy: (operation = 'other') => authenticating + (operations[operation]?.unanswered() ?? 0) >= BUSY_FROM,

    async check() {
      const asked = { service: ExchangeService.typeName };
      const ask = () => health.check(asked, { timeoutMs: CORE_HEALTH_MS });
      const askAgain = (error: unknown) => (isUnseen(error) ? ask() : Promise.reject(error));
      const { status } = await ask()
        .catch(askAgain)
        .catch((error) => {
          const says = SAID_OF_HEALTH[ConnectError.from(error).code];
          throw says === undefined ? error : new Error(says, { cause: error });
        });
      if (status !== Serving.SERVING) throw new Error('it says that it does not serve: its log tells why');
    },

    close: () => sessions.abort(),
  };
}

/** What it means when a core does not say how it is. */
const SAID_OF_HEALTH: Partial<Record<Code, string>> = {
  [Code.Unauthenticated]: 'it does not take this CORE_TOKEN',
  [Code.PermissionDenied]: 'its file of callers does not let this gateway be one: it needs `gateway` there',
  [Code.NotFound]: 'it is of an earlier release, and does not know what this gateway asks for',
};

/** What gathers the requests of each kind for the core. */
function collectors(transport: Transport, metrics: GatewayMetrics | undefined) {
  const { exchange } = createClient(ExchangeService, transport);
  const collect = <Case extends keyof Answers>(answeredBy: Case, collecting: Collecting) =>
    collectItems(exchange, metrics, answeredBy, collecting);
  return {
    authenticate: collect('bearer', { operation: 'AuthenticateApiKey', mostInMessage: 64 }),
    create: collect('body', { operation: 'CreateLead', mostInMessage: 24, gatherMs: GATHER_MS }),
    get: collect('body', { operation: 'GetLead', mostInMessage: 32 }),
    list: collect('body', { operation: 'ListLeads', mostInMessage: 4 }),
  };
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
}

/** What can be asked of the core. */
type Asked = NonNullable<MessageInitShape<typeof ExchangeItemSchema>['request']>;

/** What it answers, by the outcome's name. */
interface Answers {
  readonly body: Uint8Array;
  readonly bearer: AuthenticateApiKeyResponse;
}

/** An answer, and what goes with one to a creation. */
interface Answer<Value> {
  readonly value: Value;
  readonly leadId: string;
  readonly replayed: boolean;
}

/** Collects requests of one kind for the core. Each rejects with the Problem that its caller is to be told. */
function collectItems<Case extends keyof Answers>(
  exchange: Client<typeof ExchangeService>['exchange'],
  metrics: GatewayMetrics | undefined,
  answeredBy: Case,
  { operation, mostInMessage, gatherMs }: Collecting,
) {
  const collector = new ExchangeBatcher<Item, Answer<Answers[Case]>>(
    async function* (messages) {
      try {
        // Each request has a deadline, the call has none.
        for await (const { results } of exchange(itemsOf(messages), { timeoutMs: 0 })) yield results.map(resultOf);
      } catch (error) {
        // Like one that the core ends: what is unanswered goes over the next.
        if (!isUnseen(error)) throw error;
      }
    },
    { timeoutMs: CORE_CALL_MS, mostInMessage, gatherMs },
  );
  metrics?.watchWaiting(operation, () => collector.unanswered);
  const ask = async ({ secretSha256, requestId }: Bearer, request: Asked, sharedAs?: string) => {
    const span = currentSpan.getStore()?.child(`core ${operation}`, { requestId });
    try {
      const answer = await collector.ask({ secretSha256, request }, requestId, sharedAs, span);
      span?.end({ failed: false });
      return answer;
    } catch (error) {
      const problem = error instanceof Problem ? error : problemOfError(error);
      span?.end({ failed: problem.status >= 500, attributes: { outcome: problem.code } });
      throw problem;
    }
  };
  return { ask, unanswered: () => collector.unanswered };

  async function* itemsOf(messages: AsyncIterable<readonly Asking<Item>[]>) {
    for await (const message of messages) {
      metrics?.batchSent(operation, message.length);
      yield {
        items: message.map(({ request, requestId, span }) => ({
          ...request,
          requestId,
          ...(span && { traceparent: span.traceparent }),
        })),
      };
    }
  }

  function resultOf({ index, outcome, leadId, replayed }: ExchangeResult): Result<Answer<Answers[Case]>> {
    if (outcome.case === answeredBy) {
      return { index, answer: { value: outcome.value as Answers[Case], leadId, replayed } };
    }
    const error = outcome.case === 'error' ? problemOfStatus(outcome.value) : new Error('not what was asked for');
    return { index, error };
  }
}

/** What the core is asked for, and with whose key. */
interface Item {
  readonly secretSha256: Uint8Array;
  readonly request: Asked;
}
