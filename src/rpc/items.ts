import { setImmediate as turnOver } from 'node:timers/promises';
import type { HandlerContext } from '@connectrpc/connect';
import { textOfHash } from '../../common/rules/key-secret.ts';
import { currentSpan, type Span } from '../../common/tracing.ts';
import type { Status } from '../../proto/gen/google/rpc/status_pb.ts';
import type { ApiKeyScope } from '../domain/api-key.ts';
import type { Caller } from '../domain/caller.ts';
import { type Faults, Refusal } from '../domain/refusal.ts';
import type { Credential } from '../store/store.ts';
import type { BearerAuthenticator } from '../usecases/authenticate-api-key.ts';
import type { Call } from './call.ts';
import { callerOf } from './caller-access.ts';
import { connectionDraining } from './connection-draining.ts';
import { connectErrorOf, statusOf } from './refusals.ts';
import type { RunCall } from './run-call.ts';
import { withSharedSpan } from './shared-span.ts';
import { takeUntil } from './take-until.ts';

/** How many items a message may carry, and how many results one carries at most. */
export const MAX_ITEMS = 100;

/** How many leads items of a call may ask for that their caller has not taken yet, before no more are read. */
const MAX_OPEN = 1000;

/** Something that is asked for, together with others. */
export interface Item<Answer> {
  /** What it would be as a call of its own. */
  readonly call: Call;
  /** How many leads its result may have; at least 1. */
  readonly leads: number;
  /** @param authenticate what came with a key; once for all of a message that came with the same */
  readonly answer: (authenticate: Authenticate) => Promise<Answer>;
}

/**
 * Authenticates the bearer of a key, and reads a source of its studio, too.
 *
 * @param sourceId a UUID in lower case
 */
export type Authenticate = (secretSha256: Uint8Array, sourceId?: string) => Promise<Credential>;

/** An item that failed, or was refused. */
interface Failed {
  readonly outcome: { readonly case: 'error'; readonly value: Status };
}

/** What became of an item, by its place among all of its call. */
export type ItemResult<Answer> = { readonly index: number } & (Answer | Failed);

/** How items are answered. */
export interface ItemContext {
  readonly run: RunCall;
  readonly authenticate: BearerAuthenticator;
  /** Aborted when the server wants to stop: then no more is read, and the call ends when what was read is answered. */
  readonly ending: AbortSignal;
  /** Is told how many items of a kind a message carried. */
  readonly batchCame?: ((operation: string, items: number) => void) | undefined;
}

/** What the messages of a call carry. */
interface Carried<Message, Answer> {
  /** @throws Refusal when they are not as they should be */
  readonly itemsOf: (message: Message, caller: Caller) => readonly Item<Answer>[];
  /** What part of a message a result fills. */
  readonly partOf: (result: ItemResult<Answer>) => number;
}

/**
 * Answers each item on its own. Results that are known together go together, and nobody waits for a slower neighbour.
 *
 * @throws ConnectError invalid_argument when a message has no items, or too many
 */
export async function* answerItems<Message, Answer extends object>(
  messages: AsyncIterable<Message>,
  { run, authenticate, ending, batchCame }: ItemContext,
  { itemsOf, partOf }: Carried<Message, Answer>,
  { signal, values }: Pick<HandlerContext, 'signal' | 'values'>,
): AsyncGenerator<{ results: ItemResult<Answer>[] }> {
  const caller = callerOf({ values });
  const authenticateForCaller: Authenticate = (secretSha256, sourceId) =>
    authenticate(secretSha256, sourceId, caller.studios);
  const known: Known<Answer>[] = [];
  let begun = 0;
  /** How many leads are asked for and not told. */
  let open = 0;
  const moreKnown = new Signal();
  const moreTold = new Signal();

  let reading = true;
  const allRead = readAll().finally(() => {
    reading = false;
    moreKnown.give();
  });
  // Told below, when everything that was begun is answered.
  allRead.catch(() => {});

  while (reading || open > 0) {
    if (known.length === 0) {
      await moreKnown.wait();
      continue;
    }
    const told = known.splice(0, countThatFits(known, partOf));
    open -= leadsOf(told);
    moreTold.give();
    yield { results: told.map(({ result }) => result) };
  }
  await allRead.catch((error) => {
    throw connectErrorOf(error);
  });

  async function readAll(): Promise<void> {
    // Whoever is gone takes no results: what waits for that would wait, and be kept, for ever.
    const over = AbortSignal.any([ending, signal, caller.withdrawn, values.get(connectionDraining)]);
    signal.addEventListener('abort', () => moreTold.give());
    for await (const message of takeUntil(over, messages)) {
      const items = itemsOf(message, caller);
      if (batchCame) tellOf(items, batchCame);
      const authenticateOnce = oncePerSecret(authenticateForCaller);
      for (const [position, item] of items.entries()) begin(begun + position, item, authenticateOnce);
      begun += items.length;
      open += leadsOf(items);
      // What is known by now goes out before the next message is begun: so both sides work at the same time.
      await turnOver();
      while (open >= MAX_OPEN && !signal.aborted) await moreTold.wait();
    }
  }

  function begin(index: number, { call, leads, answer }: Item<Answer>, authenticateOnce: Authenticate): void {
    run(call, () => answer(authenticateOnce))
      .then(
        (answered) => ({ ...answered, index }),
        (error) => ({ index, outcome: { case: 'error', value: statusOf(connectErrorOf(error)) } }) as const,
      )
      .then((result) => {
        known.push({ result, leads });
        moreKnown.give();
      });
  }
}

/** What is known and not told. */
interface Known<Answer> {
  readonly result: ItemResult<Answer>;
  /** How many leads were asked for. */
  readonly leads: number;
}

const leadsOf = (items: readonly { readonly leads: number }[]): number =>
  items.reduce((sum, { leads }) => sum + leads, 0);

/** How many of what is known go into a message. */
function countThatFits<Answer>(
  known: readonly Known<Answer>[],
  partOf: (result: ItemResult<Answer>) => number,
): number {
  let full = 0;
  const first = known.findIndex(({ result }) => {
    const isFull = full >= 1;
    full += partOf(result);
    return isFull;
  });
  return first === -1 ? known.length : first;
}

function tellOf(items: readonly Item<unknown>[], batchCame: (operation: string, items: number) => void): void {
  const counts = new Map<string, number>();
  for (const { call } of items) counts.set(call.operation, (counts.get(call.operation) ?? 0) + 1);
  for (const [operation, count] of counts) batchCame(operation, count);
}

/** Authenticates the key of many items of a message once, for each source they name: they all came before that. */
function oncePerSecret(authenticate: Authenticate): Authenticate {
  const asked = new Map<string, { readonly askers: (Span | undefined)[]; readonly bearer: Promise<Credential> }>();
  return (secretSha256, sourceId) => {
    // A source's id has no space, so nothing that is no hash can have the name of one with a source.
    const name = `${textOfHash(secretSha256)} ${sourceId}`;
    const same = asked.get(name) ?? ask(secretSha256, sourceId);
    asked.set(name, same);
    same.askers.push(currentSpan.getStore());
    return same.bearer;
  };

  function ask(secretSha256: Uint8Array, sourceId: string | undefined) {
    const askers: (Span | undefined)[] = [];
    // Once all of the message are there: it is done for each of them.
    const bearer = Promise.resolve().then(() =>
      withSharedSpan(askers, 'authenticate', () => authenticate(secretSha256, sourceId)),
    );
    return { askers, bearer };
  }
}

/**
 * Refuses what a key does not allow.
 *
 * @throws Refusal SCOPE_FORBIDDEN
 * @rule 5.9
 */
export function refuseUnlessScoped({ key }: Credential, scope: ApiKeyScope | undefined): void {
  if (scope === undefined || key.scopes.includes(scope)) return;
  throw new Refusal('SCOPE_FORBIDDEN', `The key does not have the scope ${scope}.`);
}

/** Notes it as a fault when a message has no items, or too many. */
export function noteCount(faults: Faults, name: string, count: number): void {
  if (count < 1 || count > MAX_ITEMS) faults.note(name, `must be 1 to ${MAX_ITEMS}`);
}

/** Lets one wait until others have given it and every promise is kept that can be: what is known together goes together. */
class Signal {
  #given = () => {};

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#given = () => process.nextTick(resolve);
    });
  }

  give(): void {
    this.#given();
    this.#given = () => {};
  }
}
