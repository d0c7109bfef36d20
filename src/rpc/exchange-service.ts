import type { ServiceImpl } from '@connectrpc/connect';
import { publicLead } from '../../common/rules/public-lead.ts';
import { type KeyOperation, SCOPE_OF } from '../../common/rules/scopes.ts';
import type { ExchangeItem, ExchangeRequest, ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import type { ApiKeyScope } from '../domain/api-key.ts';
import type { Caller } from '../domain/caller.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { Credential } from '../store/store.ts';
import { createLead } from '../usecases/create-lead.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { getLead } from '../usecases/get-lead.ts';
import { listLeads, pageLimit } from '../usecases/list-leads.ts';
import { bearerToWire, contactFromWire, sourceIdFromWire } from './convert.ts';
import { executeItems, type Item, type ItemContext, MAX_ITEMS, type Success } from './items.ts';

type Request = ExchangeItem['request'];
type Kind = NonNullable<Request['case']>;
type RequestOf<K extends Kind> = Extract<Request, { case: K }>['value'];

/** What the log line of an item has instead of its request; filled in during execution. */
interface Summary {
  studioId?: string;
  apiKeyId?: string;
  leadId?: string;
}

/** How a kind of item is executed. */
interface Operation<K extends Kind> {
  readonly name: string;
  /** The scope that the key must have; absent: any. */
  execute(bearer: Credential, request: RequestOf<K>, summary: Summary): Promise<Success>;
}

export function exchangeService(deps: Dependencies, context: ItemContext): ServiceImpl<typeof ExchangeService> {
  const operations: { readonly [K in Kind]: Operation<K> } = {
    authenticate: {
      name: 'AuthenticateApiKey',
      async execute(bearer, _request, summary) {
        summary.apiKeyId = bearer.key.id;
        return { outcome: { case: 'bearer', value: bearerToWire(bearer) } };
      },
    },

    createLead: {
      name: 'CreateLead',
      async execute(bearer, { idempotencyKey, displayName, contact, sourceId, note }, summary) {
        const studioId = bearer.studio.id;
        const command = { studioId, idempotencyKey, displayName, contact: contactFromWire(contact), sourceId, note };
        const { lead, replayed } = await createLead(deps, command, bearer);
        summary.leadId = lead.id;
        return { outcome: { case: 'body', value: json({ lead: publicLead(lead) }) }, leadId: lead.id, replayed };
      },
    },

    getLead: {
      name: 'GetLead',
      async execute({ studio }, { leadId }, summary) {
        summary.leadId = leadId;
        const lead = await getLead(deps, { studioId: studio.id, leadId, view: 'basic' });
        return { outcome: { case: 'body', value: json({ lead: publicLead(lead) }) } };
      },
    },

    listLeads: {
      name: 'ListLeads',
      // @rule 2.4.leads 2.4.nextCursor
      async execute({ studio }, { pageSize, pageToken }) {
        const page = await listLeads(deps, { studioId: studio.id, pageSize, pageToken, view: 'basic' });
        const body = json({ leads: page.leads.map(publicLead), nextCursor: page.nextPageToken || null });
        return { outcome: { case: 'body', value: body } };
      },
    },
  };

  return { exchange: (messages, handler) => executeItems(messages, context, itemsOf, handler) };

  function itemsOf({ items }: ExchangeRequest, caller: Caller): Item[] {
    const faults = new Faults();
    if (items.length < 1 || items.length > MAX_ITEMS) faults.note('items', `must be 1 to ${MAX_ITEMS}`);
    faults.refuseIfAny();
    return items.map((item) => itemOf(item, caller));
  }

  /** Executes an item in the studio of its key: a request cannot name one. @rule 1.own-studio 5.2 */
  function itemOf({ requestId, traceparent, secretSha256, request }: ExchangeItem, caller: Caller): Item {
    const summary: Summary = {};
    const operation = request.case && (operations[request.case] as Operation<Kind>);
    return {
      call: { operation: operation?.name ?? 'Exchange', requestId, request: summary, traceparent, caller },
      leads: request.case === 'listLeads' ? pageLimit(request.value.pageSize) : 1,
      async execute(authenticate) {
        const sourceId = request.case === 'createLead' ? sourceIdFromWire(request.value.sourceId) : undefined;
        const bearer = await authenticate(secretSha256, sourceId);
        summary.studioId = bearer.studio.id;
        if (!operation) throw unknownRequest();
        refuseUnlessScoped(bearer, SCOPE_OF[request.case as KeyOperation]);
        return operation.execute(bearer, request.value as RequestOf<Kind>, summary);
      },
    };
  }
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

const json = (body: object): Uint8Array => Buffer.from(JSON.stringify(body));
