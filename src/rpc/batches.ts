import type { HandlerContext } from '@connectrpc/connect';
import type { ApiKeyScope } from '../domain/api-key.ts';
import type { Caller } from '../domain/caller.ts';
import { Faults } from '../domain/refusal.ts';
import type { Credential } from '../store/store.ts';
import { actsForKeysOnly, forbidden } from './caller-access.ts';
import { executeItems, type Item, type ItemContext, MAX_ITEMS, noteCount, refuseUnlessScoped } from './items.ts';

/**
 * The batch methods of release 1.0, for its gateways during a rolling upgrade. They do what the exchange does, but a
 * message has a list for each part of an item.
 */

/** A message of a batch method. Each list has one element per request, or is empty. */
interface Batch<Request> {
  readonly requests: readonly Request[];
  readonly requestIds: readonly string[];
  readonly traceparents: readonly string[];
  readonly secretSha256s?: readonly Uint8Array[];
}

/** How the requests of a batch method are executed. */
interface BatchMethod<Request, Response> {
  /** The name of the method that executes a single request. */
  readonly operation: string;
  /** Returns the lead source to read together with the key. */
  readonly sourceIdOf?: (request: Request) => string | undefined;
  /** Returns the maximum number of leads in a result; default: 1. */
  readonly leadsOf?: (request: Request) => number;
  /** The maximum number of results in a message. */
  readonly maxResults?: number;
  /** The scope that the key must have; undefined: any. */
  readonly scope?: ApiKeyScope;
  /** @param bearer the authenticated bearer of the request's key, if it has one */
  readonly execute: (request: Request, bearer: Credential | undefined, caller: Caller) => Promise<Response>;
}

/** Executes each request independently. @throws ConnectError invalid_argument if the lists differ in length */
export function executeBatches<Request extends object, Response extends object>(
  batches: AsyncIterable<Batch<Request>>,
  context: ItemContext,
  { operation, sourceIdOf, leadsOf = () => 1, maxResults = MAX_ITEMS, scope, execute }: BatchMethod<Request, Response>,
  handler: Pick<HandlerContext, 'signal' | 'values'>,
) {
  return executeItems(batches, context, { itemsOf, fractionOf: () => 1 / maxResults }, handler);

  function itemsOf({ requests, requestIds, traceparents, secretSha256s = [] }: Batch<Request>, caller: Caller) {
    refuseUnlessComplete(requests.length, { requestIds, traceparents, secretSha256s });
    if (scope && secretSha256s.length === 0 && actsForKeysOnly(caller)) {
      throw forbidden(caller.name, 'must send the API key of each request');
    }
    return requests.map(
      (request, index): Item<Success<Response>> => ({
        call: { operation, requestId: requestIds[index], request, traceparent: traceparents[index], caller },
        leads: leadsOf(request),
        execute: async (authenticate) => {
          const secretSha256 = secretSha256s[index];
          const bearer = secretSha256 && (await authenticate(secretSha256, sourceIdOf?.(request)));
          if (bearer) refuseUnlessScoped(bearer, scope);
          return { outcome: { case: 'response', value: await execute(request, bearer, caller) } };
        },
      }),
    );
  }
}

interface Success<Response> {
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
