import type { HandlerContext } from '@connectrpc/connect';
import { textOfHash } from '../../common/rules/key-secret.ts';
import type { Status } from '../../proto/gen/google/rpc/status_pb.ts';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { ExchangeRequest } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import type { Caller } from '../domain/caller.ts';
import type { Credential } from '../store/store.ts';
import type { BearerAuthenticator } from '../usecases/authenticate-api-key.ts';
import type { Call } from './call.ts';
import { callerOf } from './caller-access.ts';
import { connectionDraining } from './connection-draining.ts';
import { connectErrorOf, statusOf } from './refusals.ts';
import type { RunCall } from './run-call.ts';
import { takeUntil } from './take-until.ts';

/** The maximum number of items in a message, and of results in a message. */
export const MAX_ITEMS = 100;

/** A message of results is full from this size on; bytes. A single page of the longest leads has a megabyte. */
const FULL_BYTES = 64 * 1024;

/** No further message is read while the items of a call with unsent results request this many leads. */
const MAX_PENDING_LEADS = 1000;

/** A request that shares a message with others. */
export interface Item {
  /** What it would be as a call of its own. */
  readonly call: Call;
  /** The maximum number of leads in its result; at least 1. */
  readonly leads: number;
  /** @param authenticate authenticates a key once for all items of a message that have the same key and source */
  readonly execute: (authenticate: Authenticate) => Promise<Success>;
}

/**
 * Authenticates the bearer of a key, and reads a source of its studio in the same step.
 *
 * @param sourceId a UUID in lower case
 */
export type Authenticate = (secretSha256: Uint8Array, sourceId?: string) => Promise<Credential>;

/** The result of an item that succeeded. */
export interface Success {
  readonly outcome:
    | { readonly case: 'body'; readonly value: Uint8Array }
    | { readonly case: 'bearer'; readonly value: AuthenticateApiKeyResponse };
  readonly leadId?: string;
  readonly replayed?: boolean;
}

/** The outcome of an item that failed or was refused. */
interface Failure {
  readonly outcome: { readonly case: 'error'; readonly value: Status };
}

/** The result of an item; `index` is its position among all items of the call. */
type ItemResult = { readonly index: number } & (Success | Failure);

/** The dependencies of item processing. */
export interface ItemContext {
  readonly run: RunCall;
  readonly authenticate: BearerAuthenticator;
  /** Aborted when the server stops: the call then ends after the results of the messages read. */
  readonly ending: AbortSignal;
  /** Called with the number of items per operation of a message. */
  readonly batchReceived?: ((operation: string, items: number) => void) | undefined;
}

/**
 * Executes the items of all messages independently of each other. Results that are ready together share a message; none
 * waits for a slower one.
 *
 * @param itemsOf throws a Refusal if a message is invalid
 * @throws ConnectError invalid_argument if a message is invalid
 */
export async function* executeItems(
  messages: AsyncIterable<ExchangeRequest>,
  { run, authenticate, ending, batchReceived }: ItemContext,
  itemsOf: (message: ExchangeRequest, caller: Caller) => readonly Item[],
  { signal, values }: Pick<HandlerContext, 'signal' | 'values'>,
): AsyncGenerator<{ results: ItemResult[] }> {
  const caller = callerOf({ values });
  const authenticateForCaller: Authenticate = (secretSha256, sourceId) =>
    authenticate(secretSha256, sourceId, caller.studios);
  const ready: Ready[] = [];
  let begun = 0;
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
    const sent = ready.splice(0, countThatFits(ready));
    pendingLeads -= leadsOf(sent);
    moreSent.notify();
    yield { results: sent.map(({ result }) => result) };
  }
  await allRead.catch((error) => {
    throw connectErrorOf(error);
  });

  async function readAll(): Promise<void> {
    // A caller that has disconnected takes no results; without its signal, a pending wait would never end.
    const end = AbortSignal.any([ending, signal, values.get(connectionDraining)]);
    signal.addEventListener('abort', () => moreSent.notify());
    for await (const message of takeUntil(end, messages)) {
      const items = itemsOf(message, caller);
      if (batchReceived) reportBatch(items, batchReceived);
      const authenticateOnce = oncePerSecret(authenticateForCaller);
      for (const [position, item] of items.entries()) begin(begun + position, item, authenticateOnce);
      begun += items.length;
      pendingLeads += leadsOf(items);
      while (pendingLeads >= MAX_PENDING_LEADS && !signal.aborted) await moreSent.wait();
    }
  }

  function begin(index: number, { call, leads, execute }: Item, authenticateOnce: Authenticate): void {
    run(call, () => execute(authenticateOnce))
      .then(
        (success) => ({ ...success, index }),
        (error) => ({ index, outcome: { case: 'error', value: statusOf(connectErrorOf(error)) } }) as const,
      )
      .then((result) => {
        ready.push({ result, leads });
        moreReady.notify();
      });
  }
}

/** A result that is not sent yet. */
interface Ready {
  readonly result: ItemResult;
  /** The number of leads that its item requested. */
  readonly leads: number;
}

const leadsOf = (items: readonly { readonly leads: number }[]): number =>
  items.reduce((sum, { leads }) => sum + leads, 0);

/** Returns how many of the ready results fit into a message. */
function countThatFits(ready: readonly Ready[]): number {
  let full = 0;
  const first = ready.findIndex(({ result }) => {
    const isFull = full >= 1;
    full += fractionOf(result);
    return isFull;
  });
  return first === -1 ? ready.length : first;
}

/** Returns the fraction of a message that a result fills. */
function fractionOf({ outcome }: ItemResult): number {
  return Math.max(1 / MAX_ITEMS, outcome.case === 'body' ? outcome.value.length / FULL_BYTES : 0);
}

function reportBatch(items: readonly Item[], batchReceived: (operation: string, items: number) => void): void {
  const counts = new Map<string, number>();
  for (const { call } of items) counts.set(call.operation, (counts.get(call.operation) ?? 0) + 1);
  for (const [operation, count] of counts) batchReceived(operation, count);
}

/** Authenticates each key and source once for all items of a message, which all arrived before that. */
function oncePerSecret(authenticate: Authenticate): Authenticate {
  const begun = new Map<string, Promise<Credential>>();
  return (secretSha256, sourceId) => {
    // A source id contains no space, so no other hash, however malformed, can produce the same key.
    const key = `${textOfHash(secretSha256)} ${sourceId}`;
    const bearer = begun.get(key) ?? authenticate(secretSha256, sourceId);
    begun.set(key, bearer);
    return bearer;
  };
}

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
