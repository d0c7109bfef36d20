import { setImmediate as turnOver } from 'node:timers/promises';
import type { HandlerContext } from '@connectrpc/connect';
import { textOfHash } from '../../common/rules/key-secret.ts';
import { currentSpan, type Span } from '../../common/tracing.ts';
import type { Status } from '../../proto/gen/google/rpc/status_pb.ts';
import { Faults } from '../domain/refusal.ts';
import type { Credential } from '../store/store.ts';
import type { Call } from './call.ts';
import { connectErrorOf, statusOf } from './refusals.ts';
import type { RunCall } from './run-call.ts';
import { tracedForAll } from './traced-for-all.ts';
import { until } from './until.ts';

/** How many requests a message may carry. */
const MOST_REQUESTS = 100;

/** How many requests of a call may wait for their results, or these for their caller, before no more are read. */
const MOST_OPEN = 1000;

/** Requests that were sent together, what each is called in the log, and with whose key it came. */
interface Batch<Request> {
  readonly requests: readonly Request[];
  readonly requestIds: readonly string[];
  readonly traceparents: readonly string[];
  readonly secretSha256s?: readonly Uint8Array[];
}

/** What became of one request. */
interface Result<Response> {
  readonly index: number;
  readonly outcome:
    | { readonly case: 'response'; readonly value: Response }
    | { readonly case: 'error'; readonly value: Status };
}

/** What the requests of a batch method are to this server. */
interface BatchMethod<Request> {
  /** What each request would be called as a call of its own. */
  readonly operation: string;
  /** What a request names besides a lead: read together with the key it came with. */
  readonly sourceIdOf?: (request: Request) => string | undefined;
  /** How many results go into a message. */
  readonly mostResults?: number;
}

/** How batches are answered. */
export interface BatchContext {
  readonly run: RunCall;
  /** Authenticates the bearer of a key, and reads a source of its studio, too. */
  readonly authenticate: (secretSha256: Uint8Array, sourceId?: string) => Promise<Credential>;
  /** Aborted when the server wants to stop: then no more is read, and the call ends when what was read is answered. */
  readonly ending: AbortSignal;
  /** Is told how many requests a message carried. */
  readonly batchCame?: ((operation: string, requests: number) => void) | undefined;
}

/**
 * Answers each request on its own. Results that are known by the end of a turn of the event loop go together, so nobody waits
 * for a slower neighbour.
 *
 * @param answer is told of the key that the request came with, once that is authenticated
 * @throws ConnectError invalid_argument when a message has no requests, too many, or not as many names or keys
 */
export async function* answerBatches<Request extends object, Response extends object>(
  batches: AsyncIterable<Batch<Request>>,
  { run, authenticate, ending, batchCame }: BatchContext,
  { operation, sourceIdOf, mostResults = MOST_REQUESTS }: BatchMethod<Request>,
  { signal }: Pick<HandlerContext, 'signal'>,
  answer: (request: Request, bearer?: Credential) => Promise<Response>,
): AsyncGenerator<{ results: Result<Response>[] }> {
  const known: Result<Response>[] = [];
  let begun = 0;
  let told = 0;
  const moreKnown = new Signal();
  const moreTold = new Signal();

  let reading = true;
  const allRead = readAll().finally(() => {
    reading = false;
    moreKnown.give();
  });
  // Told below, when everything that was begun is answered.
  allRead.catch(() => {});

  while (reading || told < begun) {
    if (known.length === 0) {
      await moreKnown.wait();
      continue;
    }
    const results = known.splice(0, mostResults);
    told += results.length;
    moreTold.give();
    yield { results };
  }
  await allRead.catch((error) => {
    throw connectErrorOf(error);
  });

  async function readAll(): Promise<void> {
    // Whoever is gone takes no results: what waits for that would wait, and be kept, for ever.
    const over = AbortSignal.any([ending, signal]);
    signal.addEventListener('abort', () => moreTold.give());
    for await (const { requests, requestIds, traceparents, secretSha256s = [] } of until(over, batches)) {
      refuseUnlessComplete(requests.length, { requestIds, traceparents, secretSha256s });
      batchCame?.(operation, requests.length);
      const bearerOf = oncePerSecret(authenticate);
      for (const [position, request] of requests.entries()) {
        const secretSha256 = secretSha256s[position];
        const call = { operation, requestId: requestIds[position], request, traceparent: traceparents[position] };
        begin(begun + position, call, async () =>
          secretSha256 ? answer(request, await bearerOf(secretSha256, sourceIdOf?.(request))) : answer(request),
        );
      }
      begun += requests.length;
      // What is known by now goes out before the next message is begun: so both sides work at the same time.
      await turnOver();
      while (begun - told >= MOST_OPEN && !signal.aborted) await moreTold.wait();
    }
  }

  function begin(index: number, call: Call, body: () => Promise<Response>): void {
    run(call, body)
      .then(
        (value) => ({ case: 'response', value }) as const,
        (error) => ({ case: 'error', value: statusOf(connectErrorOf(error)) }) as const,
      )
      .then((outcome) => {
        known.push({ index, outcome });
        moreKnown.give();
      });
  }
}

/** Authenticates the key of many requests of a message once, for each source they name: they all came before that. */
function oncePerSecret(authenticate: BatchContext['authenticate']): BatchContext['authenticate'] {
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
      tracedForAll(askers, 'authenticate', () => authenticate(secretSha256, sourceId)),
    );
    return { askers, bearer };
  }
}

function refuseUnlessComplete(requests: number, lists: Readonly<Record<string, readonly unknown[]>>): void {
  const faults = new Faults();
  if (requests < 1 || requests > MOST_REQUESTS) faults.note('requests', `must be 1 to ${MOST_REQUESTS}`);
  for (const [name, { length }] of Object.entries(lists)) {
    if (length > 0 && length !== requests) faults.note(name, 'must be as many as there are requests, or none');
  }
  faults.refuseIfAny();
}

/** Lets one wait for the end of the turn of the event loop in which others give it. */
class Signal {
  #given = () => {};

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#given = () => setImmediate(resolve);
    });
  }

  give(): void {
    this.#given();
    this.#given = () => {};
  }
}
