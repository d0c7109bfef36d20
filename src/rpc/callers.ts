import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { type ContextValues, createContextKey, createContextValues, type HandlerContext } from '@connectrpc/connect';
import { headerValues } from '../../common/header-values.ts';
import { assert } from '../../common/invariants.ts';
import { isRequestId } from '../../common/rules/public-api.ts';
import type { Secret } from '../../common/secret.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditService } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { ConsumerService, ListConsumersRequestSchema } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { RecordRequestsRequestSchema, RequestLogService } from '../../proto/gen/leadintake/v1/request_log_pb.ts';
import {
  type CallerEntries,
  type CallerEntry,
  type CertificateSubject,
  canonicalSubject,
  tokenDigits,
  tokenHash,
} from '../callers-file.ts';
import type { CallingProgram } from '../domain/audit.ts';
import { ANY_CALLER, CALLER_ROLES, type Caller, type CallerRole } from '../domain/caller.ts';
import { type Consumer, DEFAULT_CONSUMER } from '../domain/consumer.ts';
import type { Refusal } from '../domain/refusal.ts';
import { getConsumer } from '../usecases/consumers.ts';
import type { Reading } from '../usecases/dependencies.ts';
import { studioIdIn } from './log.ts';
import { forbidden, toConnectError, unauthenticated } from './refusals.ts';
import { newCall, type RunCall, recordRefusal } from './run-call.ts';

/** The credentials that a call presents. */
export interface Presented {
  readonly authorization: string | undefined;
  /** The subject of the connection's certificate, if a trusted authority issued it. */
  readonly certificateSubject: CertificateSubject | undefined;
}

interface KnownCaller {
  readonly caller: Caller;
  readonly withdraw: () => void;
  /** Ends a former CORE_TOKEN. */
  ending?: NodeJS.Timeout;
}

/** How long a replaced CORE_TOKEN stays valid; milliseconds. Kubernetes takes more than a minute to update a file everywhere. */
const FORMER_TOKEN_MS = 300_000;

export class Callers {
  /** Callers by a token's SHA-256 in hexadecimal digits, or by a canonical certificate subject. */
  #known = new Map<string, KnownCaller>();
  /** CORE_TOKEN by its hash, with all roles; for a while also the former one. Excludes tokens that the callers file lists. */
  readonly #shared = new Map<string, KnownCaller>();
  /** The hash of the latest CORE_TOKEN. */
  #newest = '';
  readonly #isAuthenticationOff: boolean;

  /**
   * @param token has all roles until the callers file lists it
   * @param entries the callers file; undefined: there is none
   */
  constructor(token: Secret | undefined, entries: CallerEntries | undefined) {
    this.#isAuthenticationOff = token === undefined && entries === undefined;
    if (token) this.share(token);
    if (entries) this.replace(entries);
  }

  /**
   * Replaces CORE_TOKEN, unless the callers file lists it. The former token stays valid for FORMER_TOKEN_MS, until its
   * users have read the new one from their own copy of the file.
   */
  share(token: Secret): void {
    const [newest, hash] = [this.#newest, tokenHash(token.reveal())];
    const former = this.#shared.get(newest);
    if (former && newest !== hash) former.ending = setTimeout(() => this.#unshare(newest), FORMER_TOKEN_MS).unref();
    // A former token may become the newest again.
    clearTimeout(this.#shared.get(hash)?.ending);
    this.#newest = hash;
    if (!this.#known.has(hash) && !this.#shared.has(hash)) this.#shared.set(hash, newKnownCaller(ANY_CALLER));
  }

  #unshare(hash: string): void {
    const shared = this.#shared.get(hash);
    clearTimeout(shared?.ending);
    shared?.withdraw();
    this.#shared.delete(hash);
  }

  /** Replaces the callers file's entries. Callers that lost a role, studio or consumer are withdrawn. */
  replace(entries: CallerEntries): void {
    const before = this.#known;
    this.#known = new Map();
    for (const [name, entry] of Object.entries(entries)) {
      for (const { sha256 } of entry.tokens ?? []) {
        this.#unshare(sha256);
        this.#add(sha256, namedCaller(name, entry, tokenDigits(sha256)), before);
      }
      const { certificateSubject: subject } = entry;
      if (subject) this.#add(canonicalSubject(subject), namedCaller(name, entry, 'certificate'), before);
    }
    for (const [credential, { withdraw }] of before) {
      if (this.#known.get(credential)?.withdraw !== withdraw) withdraw();
    }
  }

  /**
   * Returns the caller with these credentials; undefined: not authenticated. An invalid token outweighs a certificate.
   *
   * The lookup by hash need not take constant time, because the beginning of a hash does not help to find its token.
   */
  find({ authorization, certificateSubject }: Presented): Caller | undefined {
    if (this.#isAuthenticationOff) return ANY_CALLER;
    if (authorization === undefined) {
      return certificateSubject && this.#known.get(canonicalSubject(certificateSubject))?.caller;
    }
    const [, token] = /^Bearer (.+)$/.exec(authorization) ?? [];
    // An empty token is never valid, even if the file lists its hash by mistake.
    if (token === undefined) return undefined;
    const presented = tokenHash(token);
    return (this.#known.get(presented) ?? this.#shared.get(presented))?.caller;
  }

  #add(credential: string, caller: Caller, before: ReadonlyMap<string, KnownCaller>): void {
    const former = before.get(credential);
    if (former && mayAsMuch(caller, former.caller)) {
      // The caller's open streams continue, with the access that it has gained.
      const { may, studios, consumers } = caller;
      Object.assign(former.caller, { may, studios, consumers });
      this.#known.set(credential, former);
      return;
    }
    this.#known.set(credential, newKnownCaller(caller));
  }
}

function newKnownCaller(caller: Caller): KnownCaller {
  const controller = new AbortController();
  return { caller: { ...caller, withdrawn: controller.signal }, withdraw: () => controller.abort() };
}

function namedCaller(name: string, { may, studios, consumers }: CallerEntry, credential: string): Caller {
  const limits = { studios: studios && new Set(studios), consumers: new Set(consumers) };
  return { ...ANY_CALLER, name, may: new Set(may), ...limits, credential };
}

/** Whether a caller has another one's name and at least its access. */
const mayAsMuch = ({ name, may, studios, consumers }: Caller, other: Caller): boolean =>
  name === other.name &&
  may.isSupersetOf(other.may) &&
  consumers.isSupersetOf(other.consumers) &&
  (!studios || Boolean(other.studios && studios.isSupersetOf(other.studios)));

/** Returns the caller of a request; undefined: not authenticated. */
export type Identify = (request: IncomingMessage | Http2ServerRequest) => Caller | undefined;

export function callerIdentifier(callers: Callers): Identify {
  /** The certificate subjects by socket. A certificate does not change during a connection. */
  const subjects = new WeakMap<object, CertificateSubject | undefined>();
  return (request) => {
    // In HTTP/2, `request.socket` is a proxy object per stream. The session's socket is the same for all streams.
    const socket = ('stream' in request ? request.stream.session?.socket : undefined) ?? request.socket;
    if (!subjects.has(socket)) subjects.set(socket, readSubject(socket as TLSSocket));
    // Node takes the first of several headers, but a proxy in front may have checked another one.
    const isAmbiguous = headerValues(request, 'authorization').length > 1;
    const authorization = isAmbiguous ? '' : request.headers.authorization;
    return callers.find({ authorization, certificateSubject: subjects.get(socket) });
  };
}

function readSubject(socket: Partial<TLSSocket>): CertificateSubject | undefined {
  if (socket.authorized !== true) return undefined;
  return socket.getPeerCertificate?.().subject as CertificateSubject | undefined;
}

/**
 * Admits authenticated callers to the methods that their roles allow, and callers without a token to Health. Health
 * also refuses wrong tokens. A call is refused before its body is read.
 */
export function admitKnownCallers(run: RunCall): (context: HandlerContext) => Promise<void> {
  return async (context) => {
    const { service, method, requestHeader } = context;
    const caller = callerIfAny(context);
    if (service.typeName === Health.typeName) {
      // Without `run`: probes are not logged.
      if (!caller && requestHeader.has('authorization')) throw toConnectError(unauthenticated());
      return;
    }
    const refusal = caller ? findRefusal(caller, method) : unauthenticated();
    if (refusal) throw await recordRefusal(run, newCall(method, requestHeader, caller), refusal);
  };
}

type RolesByMethod = Readonly<Record<string, readonly CallerRole[]>>;

/** Pairs a service with the roles of each of its methods; a caller needs one of them. */
const requireRoles = <Service extends DescService>(
  service: Service,
  roles: Readonly<Record<keyof Service['method'], readonly CallerRole[]>>,
): [string, RolesByMethod] => [service.typeName, roles];

/** Methods that are not listed are refused to every caller. */
const BY_SERVICE = new Map([
  requireRoles(LeadIntakeService, {
    createLead: ['crm'],
    getLead: ['crm', 'read'],
    listLeads: ['crm', 'read'],
    countLeads: ['crm', 'read'],
    listLeadEvents: ['crm', 'read'],
    exportLeads: ['crm', 'read'],
    findLeads: ['crm', 'read'],
    exportContact: ['crm'],
    changeLeadStage: ['crm'],
    updateLead: ['crm'],
    importLeads: ['crm'],
    eraseLead: ['crm'],
    eraseContact: ['crm'],
    // Not for the `read` role: a consumer has to acknowledge what it reads.
    pullLeadChanges: ['crm', 'feed'],
    watchLeadChanges: ['crm', 'feed'],
    acknowledgeLeadChanges: ['crm', 'feed'],
    resendLeads: ['crm', 'feed', 'operator'],
  }),
  requireRoles(ConsumerService, {
    createConsumer: ['crm', 'operator'],
    listConsumers: ['crm', 'feed', 'operator', 'read'],
    removeConsumer: ['crm', 'operator'],
    setAsideLeadChanges: ['crm', 'feed'],
    takeBackLeadChanges: ['crm', 'feed', 'operator'],
    listSetAsideLeadChanges: ['crm', 'feed', 'operator', 'read'],
    findMissingLeads: ['crm', 'feed', 'read'],
  }),
  requireRoles(ExchangeService, { exchange: ['gateway'] }),
  requireRoles(ApiKeyService, {
    // Not for the `operator` role: a new key would give access to leads.
    createApiKey: ['crm'],
    listApiKeys: ['crm', 'operator', 'read'],
    replaceApiKey: ['crm'],
    revokeApiKey: ['crm', 'operator'],
    authenticateApiKey: ['crm', 'gateway'],
  }),
  requireRoles(DirectoryService, {
    putStudio: ['crm', 'operator'],
    emptyStudio: ['crm'],
    eraseStudio: ['operator'],
    getStudio: ['crm', 'operator', 'read'],
    listStudios: ['crm', 'operator', 'read'],
    putApiKeyQuota: ['crm', 'operator'],
    putMember: ['crm', 'operator'],
    removeMember: ['crm', 'operator'],
    putLeadSource: ['crm', 'operator'],
    removeLeadSource: ['crm', 'operator'],
    listLeadSources: ['crm', 'operator', 'read'],
  }),
  requireRoles(AuditService, {
    listAuditEvents: ['crm', 'operator', 'read'],
    exportAuditEvents: ['crm', 'operator', 'read'],
  }),
  requireRoles(RequestLogService, { recordRequests: ['gateway'], listRequests: ['crm', 'operator', 'read'] }),
  requireRoles(ServerReflection, { serverReflectionInfo: CALLER_ROLES }),
]);

const CALLER = createContextKey<Caller | undefined>(undefined, { description: 'caller' });

export const callerValues = (caller: Caller | undefined): ContextValues => createContextValues().set(CALLER, caller);

/** Returns the caller of an admitted call. */
export function readCaller({ values }: { readonly values: ContextValues }): Caller {
  const caller = values.get(CALLER);
  assert(caller !== undefined, 'caller_of_admitted_call');
  return caller;
}

/** Returns the caller and the id of the call for the audit log. */
export function readActor(context: HandlerContext): CallingProgram {
  const callId = context.requestHeader.get('x-request-id');
  return { caller: readCaller(context).name, callId: isRequestId(callId) ? callId : null };
}

/** Returns the member who manages keys; null: the operator, if a named caller with that role names no member. */
export function memberOrOperator(memberId: string, context: { readonly values: ContextValues }): string | null {
  const { name, may } = readCaller(context);
  // Without a name, the audit log would not record who acted.
  return memberId === '' && name !== null && may.has('operator') ? null : memberId;
}

/** Returns the caller of a method that also serves unauthenticated callers. */
export const callerIfAny = ({ values }: { readonly values: ContextValues }): Caller | undefined => values.get(CALLER);

/** Returns why a caller may not call a method; undefined: it may. */
export function findRefusal(
  { name, may }: Caller,
  { parent, name: method, localName }: DescMethod,
): Refusal | undefined {
  const roles = BY_SERVICE.get(parent.typeName)?.[localName] ?? [];
  if (roles.some((role) => may.has(role))) return undefined;
  return forbidden(
    name,
    `may not call ${method}: it needs ${roles.join(' or ') || 'a role that does not exist'} in the callers file`,
  );
}

/** Whether a caller may call any method of a service. Every caller may ask for the whole server (''). */
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
  // A request with an API key is about the key's studio, which authentication checks. A request about a consumer is
  // about the consumer's studios, which are checked when it is found. A gateway's report skips other studios. A list
  // that names another studio is refused whole, because a count would reveal which leads that studio has.
  if (!studios || 'secretSha256' in request || isReport(request)) return;
  const listed = Object.values(request)
    .filter(Array.isArray)
    .flat()
    .flatMap(({ studioId = [] }) => studioId);
  const named = isAboutConsumer(request) ? listed : [studioIdIn(request), ...listed];
  if (named.every((studioId) => studios.has(studioId))) return;
  throw forbidden(name, 'may access only its own studios, and must name one');
}

const isReport = ({ $typeName }: { readonly $typeName?: string }) => $typeName === RecordRequestsRequestSchema.typeName;

const isAboutConsumer = (request: {
  readonly $typeName?: string;
  readonly consumer?: unknown;
  readonly studioId?: string;
}) => request.$typeName === ListConsumersRequestSchema.typeName || (Boolean(request.consumer) && !request.studioId);

/**
 * Refuses a request of a caller whose only role for its method is `feed`, unless it is about one of its consumers.
 *
 * @param consumer empty: DEFAULT_CONSUMER, which the callers file cannot name
 * @throws Refusal CALLER_FORBIDDEN
 */
export function refuseOtherConsumers(caller: Caller, consumer: string, roles: readonly CallerRole[] = ['crm']): void {
  if (roles.some((role) => caller.may.has(role)) || caller.consumers.has(consumer)) return;
  throw forbidden(caller.name, 'may use only its own consumers, and must name one');
}

export const mayAccess = ({ studios }: Caller, studioIds: readonly string[] | null): boolean =>
  studios === undefined || (studioIds?.every((studioId) => studios.has(studioId)) ?? false);

/** Returns a consumer that the caller may use. @param roles the roles that may also use other callers' consumers */
export async function consumerNamed(
  deps: Reading,
  name: string,
  context: HandlerContext,
  roles?: readonly CallerRole[],
): Promise<Consumer> {
  const caller = readCaller(context);
  refuseOtherConsumers(caller, name, roles);
  const consumer = await getConsumer(deps, name);
  // A consumer `default` in the callers file means a stored one, which was removed or never created.
  if (consumer === DEFAULT_CONSUMER) refuseOtherConsumers(caller, '', roles);
  refuseConsumerOfOthers(caller, consumer.studioIds);
  return consumer;
}

/** @throws Refusal CALLER_FORBIDDEN */
export function refuseConsumerOfOthers(caller: Caller, studioIds: readonly string[] | null): void {
  if (!mayAccess(caller, studioIds)) throw forbidden(caller.name, 'may access only consumers of its own studios');
}
