import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { HandlerContext } from '@connectrpc/connect';
import type { Secret } from '../../common/secret.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import {
  type CallerEntries,
  type CallerEntry,
  type CertificateSubject,
  subjectForm,
  tokenDigits,
  tokenHash,
} from '../callers-file.ts';
import { ANY_CALLER, type Caller } from '../domain/caller.ts';
import { callOf } from './call.ts';
import { callerIfAny, refusalOf } from './caller-access.ts';
import type { RunCall } from './observation.ts';
import { connectErrorOf, unauthenticated } from './refusals.ts';

/** The credentials that a call presents. */
export interface Presented {
  readonly authorization: string | undefined;
  /** The subject of the connection's certificate, if a trusted authority issued it. */
  readonly certificateSubject: CertificateSubject | undefined;
}

interface KnownCaller {
  readonly caller: Caller;
  readonly withdraw: () => void;
}

/** The programs that may call the core. */
export class Callers {
  /** By a token's SHA-256 in hexadecimal digits, or by a certificate subject's form. */
  #known = new Map<string, KnownCaller>();
  /** CORE_TOKEN by its hash, with all roles; undefined once a callers file has listed it. */
  #shared: (KnownCaller & { readonly hash: string }) | undefined;
  readonly #hasFile: boolean;

  /**
   * @param token has all roles unless the callers file lists it
   * @param entries the callers file; undefined: there is none
   */
  constructor(token: Secret | undefined, entries: CallerEntries | undefined) {
    this.#shared = token && { ...known(ANY_CALLER), hash: tokenHash(token.reveal()) };
    this.#hasFile = entries !== undefined;
    if (entries) this.replace(entries);
  }

  /** Replaces the callers file's entries. Withdraws callers whose roles or studios have changed. */
  replace(entries: CallerEntries): void {
    const before = this.#known;
    this.#known = new Map();
    for (const [name, entry] of Object.entries(entries)) {
      for (const { sha256 } of entry.tokens ?? []) {
        if (sha256 === this.#shared?.hash) {
          this.#shared.withdraw();
          this.#shared = undefined;
        }
        this.#add(sha256, callerOf(name, entry, tokenDigits(sha256)), before);
      }
      const { certificateSubject: subject } = entry;
      if (subject) this.#add(subjectForm(subject), callerOf(name, entry, 'certificate'), before);
    }
    for (const [credential, { withdraw }] of before) {
      if (this.#known.get(credential)?.withdraw !== withdraw) withdraw();
    }
  }

  /**
   * Returns the caller with these credentials; undefined: not authenticated. An invalid token outweighs a certificate.
   *
   * The lookup by hash need not take constant time: knowing the beginning of a hash does not help to find its token.
   */
  of({ authorization, certificateSubject }: Presented): Caller | undefined {
    if (!this.#hasFile && this.#shared === undefined) return ANY_CALLER;
    if (authorization === undefined) {
      return certificateSubject && this.#known.get(subjectForm(certificateSubject))?.caller;
    }
    const [, token] = /^Bearer (.+)$/.exec(authorization) ?? [];
    // An empty token is never valid, even if the file lists its hash by mistake.
    if (token === undefined) return undefined;
    const presented = tokenHash(token);
    return (this.#known.get(presented) ?? (presented === this.#shared?.hash ? this.#shared : undefined))?.caller;
  }

  #add(credential: string, caller: Caller, before: ReadonlyMap<string, KnownCaller>): void {
    const former = before.get(credential);
    if (former && hasSameAccess(former.caller, caller)) {
      this.#known.set(credential, former);
      return;
    }
    this.#known.set(credential, known(caller));
  }
}

function known(caller: Caller): KnownCaller {
  const controller = new AbortController();
  return { caller: { ...caller, withdrawn: controller.signal }, withdraw: () => controller.abort() };
}

function callerOf(name: string, { may, studios }: CallerEntry, credential: string): Caller {
  return { ...ANY_CALLER, name, may: new Set(may), studios: studios && new Set(studios), credential };
}

const hasSameAccess = (a: Caller, b: Caller): boolean =>
  a.name === b.name && isEqualSet(a.may, b.may) && isEqualSet(a.studios, b.studios);

const isEqualSet = (a?: ReadonlySet<string>, b?: ReadonlySet<string>): boolean =>
  a === b || (a !== undefined && b !== undefined && a.size === b.size && a.isSubsetOf(b));

/** Returns the caller of a request; undefined: not authenticated. */
export type Identify = (request: IncomingMessage | Http2ServerRequest) => Caller | undefined;

/** Identifies callers by the token or certificate of their requests. */
export function callerIdentifier(callers: Callers): Identify {
  /** The certificate subjects by socket: a certificate does not change during a connection. */
  const subjects = new WeakMap<object, CertificateSubject | undefined>();
  return (request) => {
    const { headers, rawHeaders } = request;
    // In HTTP/2, `request.socket` is a proxy object per stream; the session's socket is the same for all streams.
    const socket = ('stream' in request ? request.stream.session?.socket : undefined) ?? request.socket;
    if (!subjects.has(socket)) subjects.set(socket, subjectOf(socket as TLSSocket));
    // Node takes the first of several, a proxy in front may have checked another one.
    const isAmbiguous = rawHeaders.filter((name, at) => at % 2 === 0 && /^authorization$/i.test(name)).length > 1;
    const authorization = isAmbiguous ? '' : headers.authorization;
    return callers.of({ authorization, certificateSubject: subjects.get(socket) });
  };
}

function subjectOf(socket: Partial<TLSSocket>): CertificateSubject | undefined {
  if (socket.authorized !== true) return undefined;
  return socket.getPeerCertificate?.().subject as CertificateSubject | undefined;
}

/**
 * Admits authenticated callers to the methods that their roles allow, and callers without a token to Health. Health
 * refuses a wrong token, too. A call is refused before its body is read.
 */
export function admitKnownCallers(run: RunCall): (context: HandlerContext) => Promise<void> {
  return async (context) => {
    const { service, method, requestHeader } = context;
    const caller = callerIfAny(context);
    if (service.typeName === Health.typeName) {
      // Without `run`: probes are not logged.
      if (!caller && requestHeader.has('authorization')) throw connectErrorOf(unauthenticated());
      return;
    }
    const refusal = caller ? refusalOf(caller, method) : unauthenticated();
    if (!refusal) return;
    await run(callOf(method, requestHeader, caller), async () => {
      throw refusal;
    });
  };
}
