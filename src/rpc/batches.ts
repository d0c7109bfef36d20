import type { HandlerContext } from '@connectrpc/connect';
import { Faults } from '../domain/refusal.ts';
import type { Credential } from '../store/store.ts';
import { answerItems, type Item, type ItemContext, MOST_ITEMS, noteCount } from './items.ts';

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
  /** @param bearer of the key that the request came with, authenticated */
  readonly answer: (request: Request, bearer?: Credential) => Promise<Response>;
}

/** Answers each request on its own. @throws ConnectError invalid_argument when a message has not as many names or keys */
export function answerBatches<Request extends object, Response extends object>(
  batches: AsyncIterable<Batch<Request>>,
  context: ItemContext,
  { operation, sourceIdOf, leadsOf = () => 1, mostResults = MOST_ITEMS, answer }: BatchMethod<Request, Response>,
  handler: Pick<HandlerContext, 'signal' | 'values'>,
) {
  return answerItems(batches, context, { itemsOf, partOf: () => 1 / mostResults }, handler);

  function itemsOf({ requests, requestIds, traceparents, secretSha256s = [] }: Batch<Request>) {
    refuseUnlessComplete(requests.length, { requestIds, traceparents, secretSha256s });
    return requests.map(
      (request, place): Item<Answered<Response>> => ({
        call: { operation, requestId: requestIds[place], request, traceparent: traceparents[place] },
        leads: leadsOf(request),
        answer: async (authenticate) => {
          const secretSha256 = secretSha256s[place];
          const bearer = secretSha256 && (await authenticate(secretSha256, sourceIdOf?.(request)));
          return { outcome: { case: 'response', value: await answer(request, bearer) } };
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
