import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { assert, BrokenInvariant } from '../../common/invariants.ts';
import { textOfHash } from '../../common/rules/key-secret.ts';
import { type KeyOperation, SCOPE_OF } from '../../common/rules/public-api.ts';
import {
  type ExchangeItem,
  type ExchangeRequest,
  type ExchangeResultSchema,
  ExchangeService,
} from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import type { ApiKeyScope } from '../domain/api-key.ts';
import type { Caller } from '../domain/caller.ts';
import { publicLeadOf } from '../domain/public-lead.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { Credential } from '../store/port/api-keys.ts';
import type { BearerAuthenticator } from '../usecases/authenticate-api-key.ts';
import { createLead } from '../usecases/create-lead.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { getPublicLead, listPublicLeads, pageLimit } from '../usecases/read-leads.ts';
import { callerOf } from './callers.ts';
import { bearerToWire, leadDataFromWire, sourceIdFromWire } from './convert.ts';
import { callOf, connectionDraining, type RunCall, refused } from './observation.ts';
import { connectErrorOf, statusOf } from './refusals.ts';
import { takeUntil } from './take-until.ts';

/** The maximum number of items in a message, and of results in a message. */
const MAX_ITEMS = 100;

/** A message of results is full from this size on; bytes. A single page of the longest leads has a megabyte. */
const FULL_BYTES = 64 * 1024;

/** No further message is read while the items of a call with unsent results request this many leads. */
const MAX_PENDING_LEADS = 1000;

type Request = ExchangeItem['request'];
type Kind = NonNullable<Request['case']>;
type RequestOf<K extends Kind> = Extract<Request, { case: K }>['value'];

/** The result of an item; `index` is its position among all items of the call. */
type Result = MessageInitShape<typeof ExchangeResultSchema>;

/** What the log line of an item has instead of its request; filled in during execution. */
interface Summary {
  studioId?: string;
  apiKeyId?: string;
  leadId?: string;
}

/** How a kind of item is executed. */
interface Operation<K extends Kind> {
  readonly name: string;
  execute(bearer: Credential, request: RequestOf<K>, summary: Summary): Promise<Result>;
}

type Operations = { readonly [K in Kind]: Operation<K> };

/** The dependencies of the exchange besides the use cases'. */
export interface ExchangeContext {
  readonly run: RunCall;
  readonly authenticate: BearerAuthenticator;
  /** Aborted when the server stops: the call then ends after the results of the messages read. */
  readonly ending: AbortSignal;
  /** Called with the number of items per operation of a message. */
  readonly batchReceived?: ((operation: string, items: number) => void) | undefined;
}

export function exchangeService(
  deps: Dependencies,
  { run, authenticate, ending, batchReceived }: ExchangeContext,
): ServiceImpl<typeof ExchangeService> {
  const operations = operationsOf(deps);
  const operationOf = ({ request }: ExchangeItem) => request.case && (operations[request.case] as Operation<Kind>);

  return { exchange };

  /**
   * Executes the items of all messages independently of each other. Results that are ready together share a message; none
   * waits for a slower one.
   *
   * @throws ConnectError invalid_argument if a message is invalid
   */
  async function* exchange(
    messages: AsyncIterable<ExchangeRequest>,
    { signal, values, requestHeader }: Pick<HandlerContext, 'signal' | 'values' | 'requestHeader'>,
  ): AsyncGenerator<{ results: Result[] }> {
    const caller = callerOf({ values });
    const ready: { readonly result: Result; readonly leads: number }[] = [];
    let begun = 0;
    let sentCount = 0;
    /** The number of leads requested by items whose results are not sent yet. */
    let pendingLeads = 0;
    const moreReady = new Condition();
    const moreSent = new Condition();

    let reading = true;
    const allRead = readAll().finally(() => {
      reading = false;
      moreReady.notify();
    });
    // Rethrown below, after the results of all items that were begun.
    allRead.catch(() => {});

    while (reading || pendingLeads > 0) {
      if (ready.length === 0) {
        await moreReady.wait();
        continue;
      }
      const sent = ready.splice(0, countThatFits(ready.map(({ result }) => result)));
      for (const { leads } of sent) pendingLeads -= leads;
      sentCount += sent.length;
      moreSent.notify();
      yield { results: sent.map(({ result }) => result) };
    }
    try {
      await allRead;
      assert(sentCount === begun && pendingLeads === 0, 'result_per_item');
    } catch (error) {
      if (!(error instanceof BrokenInvariant)) throw connectErrorOf(error);
      throw await refused(run, callOf(ExchangeService.method.exchange, requestHeader, caller), error);
    }

    async function readAll(): Promise<void> {
      // A caller that has disconnected takes no results; without its signal, a pending wait would never end.
      const end = AbortSignal.any([ending, signal, values.get(connectionDraining)]);
      signal.addEventListener('abort', () => moreSent.notify());
      for await (const { items } of takeUntil(end, messages)) {
        const faults = new Faults();
        if (items.length < 1 || items.length > MAX_ITEMS) faults.note('items', `must be 1 to ${MAX_ITEMS}`);
        faults.refuseIfAny();
        if (batchReceived) {
          const kinds = Object.entries(Object.groupBy(items, (item) => operationOf(item)?.name ?? 'Exchange'));
          for (const [operation, { length } = []] of kinds) batchReceived(operation, length ?? 0);
        }
        const authenticateOnce = oncePerSecret(authenticate);
        for (const item of items) {
          const leads = item.request.case === 'listLeads' ? pageLimit(item.request.value.pageSize) : 1;
          const index = begun;
          begun += 1;
          pendingLeads += leads;
          resultOf(item, operationOf(item), caller, run, authenticateOnce).then((result) => {
            ready.push({ result: { ...result, index }, leads });
            moreReady.notify();
          });
        }
        while (pendingLeads >= MAX_PENDING_LEADS && !signal.aborted) await moreSent.wait();
      }
    }
  }
}

function operationsOf(deps: Dependencies): Operations {
  return {
    authenticate: {
      name: 'AuthenticateApiKey',
      async execute(bearer, _request, summary) {
        summary.apiKeyId = bearer.key.id;
        return { outcome: { case: 'bearer', value: bearerToWire(bearer) } };
      },
    },

    createLead: {
      name: 'CreateLead',
      async execute(bearer, creation, summary) {
        const { idempotencyKey } = creation;
        const command = { studioId: bearer.studio.id, idempotencyKey, ...leadDataFromWire(creation) };
        const { lead, replayed } = await createLead(deps, command, bearer);
        summary.leadId = lead.id;
        return { ...leadBody(publicLeadOf(lead)), leadId: lead.id, replayed };
      },
    },

    getLead: {
      name: 'GetLead',
      async execute({ studio }, { leadId }, summary) {
        summary.leadId = leadId;
        return leadBody(await getPublicLead(deps, { studioId: studio.id, leadId }));
      },
    },

    listLeads: {
      name: 'ListLeads',
      // @rule 2.4.leads 2.4.nextCursor
      async execute({ studio }, { pageSize, pageToken }) {
        const { leads, nextPageToken } = await listPublicLeads(deps, { studioId: studio.id, pageSize, pageToken });
        return body(`{"leads":[${leads.join()}],"nextCursor":${JSON.stringify(nextPageToken || null)}}`);
      },
    },
  };
}

/** Executes an item in the studio of its key: a request cannot name one. Never rejects. @rule 1.own-studio 5.2 */
function resultOf(
  item: ExchangeItem,
  operation: Operation<Kind> | undefined,
  caller: Caller,
  run: RunCall,
  authenticate: BearerAuthenticator,
): Promise<Result> {
  const { requestId, traceparent, secretSha256, request } = item;
  const summary: Summary = {};
  const call = { operation: operation?.name ?? 'Exchange', requestId, request: summary, traceparent, caller };
  const execute = async () => {
    const sourceId = request.case === 'createLead' ? sourceIdFromWire(request.value.sourceId) : undefined;
    const bearer = await authenticate(secretSha256, sourceId, caller.studios);
    summary.studioId = bearer.studio.id;
    if (!operation) throw unknownRequest();
    refuseUnlessScoped(bearer, SCOPE_OF[request.case as KeyOperation]);
    return operation.execute(bearer, request.value as RequestOf<Kind>, summary);
  };
  return run(call, execute).catch((error) => ({
    outcome: { case: 'error', value: statusOf(connectErrorOf(error)) },
  }));
}

function countThatFits(ready: readonly Result[]): number {
  let bytes = 0;
  const full = ready.findIndex(({ outcome }, count) => {
    const isFull = bytes >= FULL_BYTES || count >= MAX_ITEMS;
    if (outcome?.case === 'body') bytes += outcome.value.length;
    return isFull;
  });
  return full < 0 ? ready.length : full;
}

/** Authenticates each key and source once for all items of a message, which all arrived before that. */
function oncePerSecret(authenticate: BearerAuthenticator): BearerAuthenticator {
  const begun = new Map<string, Promise<Credential>>();
  return (secretSha256, sourceId, studios) => {
    // A source id contains no space, so no other hash, however malformed, can produce the same key.
    const key = `${textOfHash(secretSha256)} ${sourceId}`;
    const bearer = begun.get(key) ?? authenticate(secretSha256, sourceId, studios);
    begun.set(key, bearer);
    return bearer;
  };
}

/**
 * Refuses an item whose key lacks a scope.
 *
 * @throws Refusal SCOPE_FORBIDDEN
 * @rule 5.9
 */
function refuseUnlessScoped({ key }: Credential, scope: ApiKeyScope | undefined): void {
  if (scope === undefined || key.scopes.includes(scope)) return;
  throw new Refusal('SCOPE_FORBIDDEN', `The key does not have the scope ${scope}.`);
}

function unknownRequest(): Refusal {
  const faults = new Faults();
  faults.note('request', 'must be known to this release');
  return faults.refusal();
}

const body = (json: string) => ({ outcome: { case: 'body', value: Buffer.from(json) } }) as const;

/** @param lead its JSON */
const leadBody = (lead: string) => body(`{"lead":${lead}}`);

/**
 * Lets one function wait for a notification. It resumes on the next tick, after all promises that settle in this one:
 * results that become ready together are sent together.
 */
class Condition {
  #resume = () => {};

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = () => process.nextTick(resolve);
    });
  }

  notify(): void {
    this.#resume();
    this.#resume = () => {};
  }
}
