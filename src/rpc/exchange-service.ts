import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { Condition } from '../../common/condition.ts';
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
import { toPublicLead } from '../domain/public-lead.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { Credential } from '../store/port/api-keys.ts';
import type { BearerAuthenticator } from '../usecases/authenticate-api-key.ts';
import { createLead } from '../usecases/create-lead.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { getPublicLead, listPublicLeads, pageLimit } from '../usecases/read-leads.ts';
import { readCaller } from './callers.ts';
import { bearerToWire, leadDataFromWire, sourceIdFromWire } from './convert.ts';
import { toConnectError, toStatus } from './refusals.ts';
import { connectionDraining, newCall, type RunCall, recordRefusal } from './run-call.ts';
import { takeUntil } from './take-until.ts';

/** The maximum number of items in a message, and of results in a message. */
const MAX_ITEMS = 100;

/** The size at which a message of results is full; bytes. A single page of the longest leads has a megabyte. */
const FULL_BYTES = 64 * 1024;

/** Reading pauses while the items without sent results request this many leads. */
const MAX_PENDING_LEADS = 1000;

/** The result of an item; `index` is its position among all items of the call. */
type Result = MessageInitShape<typeof ExchangeResultSchema>;

/** The names of the RPCs that items correspond to. */
const RPC_OF = {
  authenticate: 'AuthenticateApiKey',
  createLead: 'CreateLead',
  getLead: 'GetLead',
  listLeads: 'ListLeads',
} as const;

/** The fields that an item's log line has instead of its request, filled in during execution. */
interface Summary {
  studioId?: string;
  apiKeyId?: string;
  leadId?: string;
}

/** The dependencies of the exchange besides those of the use cases. */
export interface ExchangeContext {
  readonly run: RunCall;
  readonly authenticate: BearerAuthenticator;
  /** Aborts when the server stops. The call then ends after the results of the messages read. */
  readonly ending: AbortSignal;
  /** Called with the number of items per operation of a message. */
  readonly batchReceived?: ((operation: string, items: number) => void) | undefined;
}

export function exchangeService(
  deps: Dependencies,
  { run, authenticate, ending, batchReceived }: ExchangeContext,
): ServiceImpl<typeof ExchangeService> {
  return { exchange };

  /**
   * Executes the items of all messages independently of each other. Results that are ready together share a message;
   * none waits for a slower one.
   *
   * @throws ConnectError invalid_argument if a message is invalid
   */
  async function* exchange(
    messages: AsyncIterable<ExchangeRequest>,
    { signal, values, requestHeader }: HandlerContext,
  ): AsyncGenerator<{ results: Result[] }> {
    const caller = readCaller({ values });
    const ready: { readonly result: Result; readonly leads: number }[] = [];
    let begun = 0;
    /** The number of leads requested by items without sent results. */
    let pendingLeads = 0;
    const moreReady = new Condition(process.nextTick);
    const moreSent = new Condition(process.nextTick);

    let reading = true;
    const allRead = readAll().finally(() => {
      reading = false;
      moreReady.notify();
    });
    // Rethrown below, after the results of all started items.
    allRead.catch(() => {});

    while (reading || pendingLeads > 0) {
      if (ready.length === 0) {
        await moreReady.wait();
        continue;
      }
      const sent = ready.splice(0, countThatFits(ready));
      for (const { leads } of sent) pendingLeads -= leads;
      moreSent.notify();
      yield { results: sent.map(({ result }) => result) };
    }
    try {
      await allRead;
      assert(pendingLeads === 0, 'result_per_item');
    } catch (error) {
      if (!(error instanceof BrokenInvariant)) throw toConnectError(error);
      throw await recordRefusal(run, newCall(ExchangeService.method.exchange, requestHeader, caller), error);
    }

    async function readAll(): Promise<void> {
      // A disconnected caller takes no results. Without its signal, a pending wait would never end.
      const end = AbortSignal.any([ending, signal, values.get(connectionDraining)]);
      signal.addEventListener('abort', () => moreSent.notify());
      for await (const { items } of takeUntil(end, messages)) {
        const faults = new Faults();
        if (items.length < 1 || items.length > MAX_ITEMS) faults.note('items', `must be 1 to ${MAX_ITEMS}`);
        faults.refuseIfAny();
        const byRpc = batchReceived ? Object.groupBy(items, findRpc) : {};
        for (const [rpc, { length } = []] of Object.entries(byRpc)) batchReceived?.(rpc, length ?? 0);
        const once = shared();
        for (const item of items) {
          const leads = item.request.case === 'listLeads' ? pageLimit(item.request.value.pageSize) : 1;
          const index = begun;
          begun += 1;
          pendingLeads += leads;
          executeItem(item, caller, once).then((result) => {
            ready.push({ result: { ...result, index }, leads });
            moreReady.notify();
          });
        }
        while (pendingLeads >= MAX_PENDING_LEADS && !signal.aborted) await moreSent.wait();
      }
    }
  }

  /** Executes an item in the studio of its key, because a request cannot name one. Never rejects. @rule 1.own-studio 5.2 */
  function executeItem(item: ExchangeItem, caller: Caller, once: Once): Promise<Result> {
    const { requestId, traceparent, secretSha256, request } = item;
    const summary: Summary = {};
    const execute = async () => {
      const sourceId = request.case === 'createLead' ? sourceIdFromWire(request.value.sourceId) : undefined;
      const identify = () => authenticate(secretSha256, sourceId, caller.studios);
      const bearer = await once(keyName(secretSha256, sourceId), identify);
      summary.studioId = bearer.studio.id;
      refuseUnlessScoped(bearer, SCOPE_OF[request.case as KeyOperation]);
      return answer(deps, request, bearer, summary, once);
    };
    return run({ operation: findRpc(item), requestId, request: summary, traceparent, caller }, execute).catch(failure);
  }
}

/** Returns the successful result of an item. @throws Refusal */
async function answer(
  deps: Dependencies,
  request: ExchangeItem['request'],
  bearer: Credential,
  summary: Summary,
  once: Once,
): Promise<Result> {
  const studioId = bearer.studio.id;
  switch (request.case) {
    case 'authenticate':
      summary.apiKeyId = bearer.key.id;
      return { outcome: { case: 'bearer', value: bearerToWire(bearer) } };
    case 'createLead': {
      const { idempotencyKey } = request.value;
      const command = { studioId, idempotencyKey, ...leadDataFromWire(request.value) };
      const { lead, replayed } = await createLead(deps, command, bearer);
      summary.leadId = lead.id;
      return { ...leadBody(toPublicLead(lead)), leadId: lead.id, replayed };
    }
    case 'getLead': {
      const { leadId } = request.value;
      summary.leadId = leadId;
      return leadBody(await getPublicLead(deps, { studioId, leadId }));
    }
    // @rule 2.4.leads 2.4.nextCursor
    case 'listLeads': {
      const { pageSize, pageToken } = request.value;
      return once(['page', studioId, pageSize, pageToken].join(' '), async () => {
        const { leads, nextPageToken } = await listPublicLeads(deps, { studioId, pageSize, pageToken });
        return body(`{"leads":[${leads.join()}],"nextCursor":${JSON.stringify(nextPageToken || null)}}`);
      });
    }
    default: {
      const faults = new Faults();
      faults.note('request', 'must be known to this release');
      throw faults.refusal();
    }
  }
}

const findRpc = ({ request }: ExchangeItem): string => (request.case ? RPC_OF[request.case] : 'Exchange');

function countThatFits(ready: readonly { readonly result: Result }[]): number {
  let bytes = 0;
  const full = ready.findIndex(({ result: { outcome } }, count) => {
    const isFull = bytes >= FULL_BYTES || count >= MAX_ITEMS;
    if (outcome?.case === 'body') bytes += outcome.value.length;
    return isFull;
  });
  return full < 0 ? ready.length : full;
}

/** A source id contains no space, so no other hash can produce the same name, however malformed. */
const keyName = (secretSha256: Uint8Array, sourceId = '') => `key ${textOfHash(secretSha256)} ${sourceId}`;

/** Makes a call, unless an item of the same message has made the call of that name. */
type Once = <Answer>(name: string, call: () => Promise<Answer>) => Promise<Answer>;

/** Returns the calls of a message. All its items arrive before the first is executed, so no answer is older than a request. */
function shared(): Once {
  const begun = new Map<string, Promise<unknown>>();
  return <Answer>(name: string, call: () => Promise<Answer>) => {
    const answer = (begun.get(name) as Promise<Answer> | undefined) ?? call();
    begun.set(name, answer);
    return answer;
  };
}

/** Refuses an item whose key lacks a scope. @throws Refusal SCOPE_FORBIDDEN @rule 5.9 */
function refuseUnlessScoped({ key }: Credential, scope: ApiKeyScope | undefined): void {
  if (scope === undefined || key.scopes.includes(scope)) return;
  throw new Refusal('SCOPE_FORBIDDEN', `The key does not have the scope ${scope}.`);
}

const failure = (error: unknown): Result => ({ outcome: { case: 'error', value: toStatus(toConnectError(error)) } });

const body = (json: string) => ({ outcome: { case: 'body', value: Buffer.from(json) } }) as const;

/** @param lead a lead as JSON */
const leadBody = (lead: string) => body(`{"lead":${lead}}`);
