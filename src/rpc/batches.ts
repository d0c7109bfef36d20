import type { HandlerContext } from '@connectrpc/connect';
import type { ApiKeyScope } from '../domain/api-key.ts';
import type { Caller } from '../domain/caller.ts';
import { Faults } from '../domain/refusal.ts';
import type { Credential } from '../store/store.ts';
import { actsForKeysOnly, forbidden } from './caller-access.ts';
import { answerItems, type Item, type ItemContext, MAX_ITEMS, noteCount, refuseUnlessScoped } from './items.ts';

/**
 * The batch methods of release 1.0, for its gateways while they are being replaced: what the exchange does, with a list for each
 * part of an item.
 */

/** Requests that were sent together, what each is called in the log, and with whose key it came. */
interface Batch<Request> {
  readonly requests: readonly Request[];
  readonly requestIds: readonly string[];
  readonly traceparents: readonly string[];
  readonly secretSha256s?: readonly Uint8Array[];
}

/** What the requests of a batch method are to this server. */
interface BatchMethod<Request, Response> {
  /** What each request would be called as a call of its own. */
  readonly operation: string;
  /** What a request names besides a lead: read together with the key it came with. */
  readonly sourceIdOf?: (request: Request) => string | undefined;
  /** How many leads a result may have; 1 unless told. */
  readonly leadsOf?: (request: Request) => number;
  /** How many results go into a message. */
  readonly mostResults?: number;
  /** What the key has to allow; undefined: nothing is asked for but what it says itself. */
  readonly scope?: ApiKeyScope;
  /** @param bearer of the key that the request came with, authenticated */
  readonly answer: (request: Request, bearer: Credential | undefined, caller: Caller) => Promise<Response>;
}

/** Answers each request on its own. @throws ConnectError invalid_argument when a message has not as many names or keys */
export function answerBatches<Request extends object, Response extends object>(
  batches: AsyncIterable<Batch<Request>>,
  context: ItemContext,
  { operation, sourceIdOf, leadsOf = () => 1, mostResults = MAX_ITEMS, scope, answer }: BatchMethod<Request, Response>,
  handler: Pick<HandlerContext, 'signal' | 'values'>,
) {
  return answerItems(batches, context, { itemsOf, partOf: () => 1 / mostResults }, handler);

  function itemsOf({ requests, requestIds, traceparents, secretSha256s = [] }: Batch<Request>, caller: Caller) {
    refuseUnlessComplete(requests.length, { requestIds, traceparents, secretSha256s });
    if (scope && secretSha256s.length === 0 && actsForKeysOnly(caller)) {
      throw forbidden(caller.name, 'may ask only with the key that each request came with');
    }
    return requests.map(
      (request, place): Item<Answered<Response>> => ({
        call: { operation, requestId: requestIds[place], request, traceparent: traceparents[place], caller },
        leads: leadsOf(request),
        answer: async (authenticate) => {
          const secretSha256 = secretSha256s[place];
          const bearer = secretSha256 && (await authenticate(secretSha256, sourceIdOf?.(request)));
          if (bearer) refuseUnlessScoped(bearer, scope);
          return { outcome: { case: 'response', value: await answer(request, bearer, caller) } };
        },
      }),
    );
  }
}

interface Answered<Response> {
  readonly outcome: { readonly case: 'response'; readonly value: Response };
}

function refuseUnlessComplete(requests: number, lists: Readonly<Record<string, readonly unknown[]>>): void {
  const faults = new Faults();
  noteCount(faults, 'requests', requests);
  for (const [name, { length }] of Object.entries(lists)) {
    if (length > 0 && length !== requests) faults.note(name, 'must be as many as there are requests, or none');
  }
  faults.refuseIfAny();
}
