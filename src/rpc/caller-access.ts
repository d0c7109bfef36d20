import type { DescMethod } from '@bufbuild/protobuf';
import { type ContextValues, createContextKey, createContextValues } from '@connectrpc/connect';
import type { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { AuditService } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import type { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import type { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import type { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Caller, CallerRole } from '../domain/caller.ts';
import { Refusal } from '../domain/refusal.ts';

/** Which callers a method is for: whoever may do one of these. */
type For<Service extends { readonly method: object }> = Readonly<
  Record<keyof Service['method'], readonly CallerRole[]>
>;

const LEADS: For<typeof LeadIntakeService> = {
  createLead: ['crm'],
  getLead: ['crm', 'read'],
  listLeads: ['crm', 'read'],
  exportLeads: ['crm', 'read'],
  findLeads: ['crm', 'read'],
  // Of release 1.0's gateways; each request has a key, or its caller may do the same without.
  batchCreateLeads: ['crm', 'gateway'],
  batchGetLeads: ['crm', 'gateway'],
  batchListLeads: ['crm', 'gateway'],
  changeLeadStage: ['crm'],
  updateLead: ['crm'],
  importLeads: ['crm'],
  eraseLead: ['crm'],
  eraseContact: ['crm'],
  // There is one feed, and what is read of it is to be acknowledged: a consumer's, not a reader's.
  pullLeadChanges: ['crm'],
  watchLeadChanges: ['crm'],
  acknowledgeLeadChanges: ['crm'],
  resendLeads: ['crm', 'operator'],
};

const EXCHANGE: For<typeof ExchangeService> = { exchange: ['gateway'] };

const API_KEYS: For<typeof ApiKeyService> = {
  // Whoever has a key made can see leads by it.
  createApiKey: ['crm'],
  listApiKeys: ['crm', 'operator', 'read'],
  replaceApiKey: ['crm'],
  revokeApiKey: ['crm', 'operator'],
  authenticateApiKey: ['crm', 'gateway'],
  batchAuthenticateApiKeys: ['crm', 'gateway'],
};

const DIRECTORY: For<typeof DirectoryService> = {
  putStudio: ['crm', 'operator'],
  getStudio: ['crm', 'operator', 'read'],
  listStudios: ['crm', 'operator', 'read'],
  putApiKeyQuota: ['crm', 'operator'],
  putMember: ['crm', 'operator'],
  removeMember: ['crm', 'operator'],
  putLeadSource: ['crm', 'operator'],
  removeLeadSource: ['crm', 'operator'],
  listLeadSources: ['crm', 'operator', 'read'],
};

const AUDIT: For<typeof AuditService> = { listAuditEvents: ['crm', 'operator', 'read'] };

const BY_SERVICE: Readonly<Record<string, Readonly<Record<string, readonly CallerRole[]>>>> = {
  'leadintake.v1.LeadIntakeService': LEADS,
  'leadintake.v1.ExchangeService': EXCHANGE,
  'leadintake.v1.ApiKeyService': API_KEYS,
  'leadintake.v1.DirectoryService': DIRECTORY,
  'leadintake.v1.AuditService': AUDIT,
};

const CALLER = createContextKey<Caller | undefined>(undefined, { description: 'caller' });

/** What goes with each call of a caller. */
export const valuesOf = (caller: Caller | undefined): ContextValues => createContextValues().set(CALLER, caller);

/** Who makes a call that was let in. */
export function callerOf({ values }: { readonly values: ContextValues }): Caller {
  const caller = values.get(CALLER);
  if (!caller) throw new Error('a call without a caller was let in');
  return caller;
}

/** By whom something is done, for the audit. */
export const actorOf = (context: { readonly values: ContextValues }): { readonly caller: string | null } => ({
  caller: callerOf(context).name,
});

/** Who manages keys: null, where a named caller that may be the operator names no member. */
export function memberOrOperator(memberId: string, context: { readonly values: ContextValues }): string | null {
  const { name, may } = callerOf(context);
  // Of a caller without a name the audit could say nothing at all.
  return memberId === '' && name !== null && may.has('operator') ? null : memberId;
}

/** The same, where anybody may call. */
export const callerIfAny = ({ values }: { readonly values: ContextValues }): Caller | undefined => values.get(CALLER);

/** Why a caller may not call a method; undefined: it may. Health and reflection are for all whom the server lets in. */
export function refusalOf({ name, may }: Caller, { parent, name: method, localName }: DescMethod): Refusal | undefined {
  const roles = BY_SERVICE[parent.typeName]?.[localName];
  if (!roles || roles.some((role) => may.has(role))) return undefined;
  return forbidden(name, `may not call ${method}: it needs ${roles.join(' or ')} in the file of callers`);
}

/** Whether a caller may ask for a lead only on behalf of an API key: others name a studio themselves. */
export const actsForKeysOnly = ({ may, studios }: Caller): boolean => !may.has('crm') || studios !== undefined;

/** Whether a caller may call any method of a service. */
export function mayUse({ may }: Caller, serviceName: string): boolean {
  const methods = BY_SERVICE[serviceName];
  return !methods || Object.values(methods).some((roles) => roles.some((role) => may.has(role)));
}

/**
 * Refuses a request that is about a studio which its caller has nothing to do with, or about all studios when it has to do with
 * some only.
 *
 * @throws Refusal CALLER_FORBIDDEN
 */
export function refuseOtherStudios({ name, studios }: Caller, request: object): void {
  // What comes with a key is about the key's studio, which is looked at where the key is.
  if (!studios || 'secretSha256' in request) return;
  const asked = studioOf(request);
  if (asked !== undefined && studios.has(asked)) return;
  throw forbidden(name, 'may ask about its own studios only, and has to name one');
}

export const forbidden = (name: string | null, what: string): Refusal =>
  new Refusal('CALLER_FORBIDDEN', `The caller ${name} ${what}.`, { metadata: { caller: name ?? '' } });

/** What ends a call that its caller may not make any more. */
export const withdrawnNow = (): Refusal =>
  new Refusal(
    'CALLER_UNAUTHENTICATED',
    'What this call was let in with is no longer valid, or allows something else now.',
  );

/** Wherever requests name a studio. An empty id names none. */
interface NamesStudios {
  readonly studioId?: string;
  readonly studio?: { readonly id: string };
  readonly member?: { readonly studioId: string };
  readonly leadSource?: { readonly studioId: string };
}

function studioOf({ studioId, studio, member, leadSource }: NamesStudios): string | undefined {
  return studioId ?? studio?.id ?? member?.studioId ?? leadSource?.studioId;
}
