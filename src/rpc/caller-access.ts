import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { type ContextValues, createContextKey, createContextValues } from '@connectrpc/connect';
import { assert } from '../../common/invariants.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditService } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { CALLER_ROLES, type Caller, type CallerRole } from '../domain/caller.ts';
import type { Refusal } from '../domain/refusal.ts';
import { studioIdIn } from './observation.ts';
import { forbidden } from './refusals.ts';

type RolesByMethod = Readonly<Record<string, readonly CallerRole[]>>;

/** The roles of each method of a service; a caller needs one of them. */
const rolesOf = <Service extends DescService>(
  service: Service,
  roles: Readonly<Record<keyof Service['method'], readonly CallerRole[]>>,
): [string, RolesByMethod] => [service.typeName, roles];

/** What is not listed is for no caller. */
const BY_SERVICE = new Map([
  rolesOf(LeadIntakeService, {
    createLead: ['crm'],
    getLead: ['crm', 'read'],
    listLeads: ['crm', 'read'],
    exportLeads: ['crm', 'read'],
    findLeads: ['crm', 'read'],
    changeLeadStage: ['crm'],
    updateLead: ['crm'],
    importLeads: ['crm'],
    eraseLead: ['crm'],
    eraseContact: ['crm'],
    // Not for the `read` role: there is one feed, and its consumer has to acknowledge what it reads.
    pullLeadChanges: ['crm'],
    watchLeadChanges: ['crm'],
    acknowledgeLeadChanges: ['crm'],
    resendLeads: ['crm', 'operator'],
  }),
  rolesOf(ExchangeService, { exchange: ['gateway'] }),
  rolesOf(ApiKeyService, {
    // Not for the `operator` role: a new key would give access to leads.
    createApiKey: ['crm'],
    listApiKeys: ['crm', 'operator', 'read'],
    replaceApiKey: ['crm'],
    revokeApiKey: ['crm', 'operator'],
    authenticateApiKey: ['crm', 'gateway'],
  }),
  rolesOf(DirectoryService, {
    putStudio: ['crm', 'operator'],
    getStudio: ['crm', 'operator', 'read'],
    listStudios: ['crm', 'operator', 'read'],
    putApiKeyQuota: ['crm', 'operator'],
    putMember: ['crm', 'operator'],
    removeMember: ['crm', 'operator'],
    putLeadSource: ['crm', 'operator'],
    removeLeadSource: ['crm', 'operator'],
    listLeadSources: ['crm', 'operator', 'read'],
  }),
  rolesOf(AuditService, { listAuditEvents: ['crm', 'operator', 'read'] }),
  rolesOf(ServerReflection, { serverReflectionInfo: CALLER_ROLES }),
]);

const CALLER = createContextKey<Caller | undefined>(undefined, { description: 'caller' });

export const valuesOf = (caller: Caller | undefined): ContextValues => createContextValues().set(CALLER, caller);

/** Returns the caller of an admitted call. */
export function callerOf({ values }: { readonly values: ContextValues }): Caller {
  const caller = values.get(CALLER);
  assert(caller !== undefined, 'caller_of_admitted_call');
  return caller;
}

/** Returns the caller as the audit log names it. */
export const actorOf = (context: { readonly values: ContextValues }): { readonly caller: string | null } => ({
  caller: callerOf(context).name,
});

/** Returns the member who manages keys; null: the operator, if a named caller with that role names no member. */
export function memberOrOperator(memberId: string, context: { readonly values: ContextValues }): string | null {
  const { name, may } = callerOf(context);
  // For a caller without a name, the audit log would not record anyone.
  return memberId === '' && name !== null && may.has('operator') ? null : memberId;
}

/** Returns the caller of a method that also serves unauthenticated ones. */
export const callerIfAny = ({ values }: { readonly values: ContextValues }): Caller | undefined => values.get(CALLER);

/** Returns why a caller may not call a method; undefined: it may. */
export function refusalOf({ name, may }: Caller, { parent, name: method, localName }: DescMethod): Refusal | undefined {
  const roles = BY_SERVICE.get(parent.typeName)?.[localName] ?? [];
  if (roles.some((role) => may.has(role))) return undefined;
  return forbidden(
    name,
    `may not call ${method}: it needs ${roles.join(' or ') || 'a role that none has'} in the callers file`,
  );
}

/** Whether a caller may call any method of a service; '': of any. */
export function mayUse({ may }: Caller, serviceName: string): boolean {
  const methods = BY_SERVICE.get(serviceName) ?? {};
  return serviceName === '' || Object.values(methods).some((roles) => roles.some((role) => may.has(role)));
}

/**
 * Refuses a request about a studio that its caller may not access, or about all studios if it may access only some.
 *
 * @throws Refusal CALLER_FORBIDDEN
 */
export function refuseOtherStudios({ name, studios }: Caller, request: object): void {
  // A request with an API key is about the key's studio, which is checked when the key is authenticated.
  if (!studios || 'secretSha256' in request) return;
  const studioId = studioIdIn(request);
  if (studioId !== undefined && studios.has(studioId)) return;
  throw forbidden(name, 'may access only its own studios, and must name one');
}
