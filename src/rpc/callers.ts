import type { Secret } from '../../common/secret.ts';
import {
  type CallerEntries,
  type CallerEntry,
  type CertificateSubject,
  subjectForm,
  tokenDigits,
  tokenHash,
} from '../callers-file.ts';
import { ANY_CALLER, type Caller } from '../domain/caller.ts';

/** What a call says of who makes it. */
export interface Presented {
  readonly authorization: string | undefined;
  /** Whom the certificate of its connection was issued to, if an authority of ours says so. */
  readonly certificateSubject: CertificateSubject | undefined;
}

interface Known {
  readonly caller: Caller;
  readonly withdraw: () => void;
}

/** Who may call this service. */
export class Callers {
  /** By the SHA-256 of a token in hexadecimal digits, or by the form of a certificate's subject. */
  #known = new Map<string, Known>();
  /** What the one token that may do everything hashes to; not once a file has named it, also when that names it no more. */
  #tokenHash: string | undefined;
  readonly #namesCallers: boolean;

  /**
   * @param token may do everything, unless the file says what it may do
   * @param entries undefined: callers are not told apart
   */
  constructor(token: Secret | undefined, entries: CallerEntries | undefined) {
    this.#tokenHash = token && tokenHash(token.reveal());
    this.#namesCallers = entries !== undefined;
    if (entries) this.replace(entries);
  }

  /** Takes over what the file says now. Whatever may do something else than before is withdrawn. */
  replace(entries: CallerEntries): void {
    const before = this.#known;
    this.#known = new Map();
    for (const [name, entry] of Object.entries(entries)) {
      for (const { sha256 } of entry.tokens ?? []) {
        if (sha256 === this.#tokenHash) this.#tokenHash = undefined;
        this.#take(sha256, callerOf(name, entry, tokenDigits(sha256)), before);
      }
      const { certificateSubject: subject } = entry;
      if (subject) this.#take(subjectForm(subject), callerOf(name, entry, 'certificate'), before);
    }
    for (const [credential, { withdraw }] of before) {
      if (this.#known.get(credential)?.withdraw !== withdraw) withdraw();
    }
  }

  /**
   * Who makes a call; undefined: nobody who may. What it presents as a token has to be one, whatever its certificate.
   *
   * The hash of a token that somebody guesses may be looked up in however long it takes: knowing how a hash begins does not
   * help to find a token of it.
   */
  of({ authorization, certificateSubject }: Presented): Caller | undefined {
    if (this.asksForNothing) return ANY_CALLER;
    if (authorization === undefined) {
      return certificateSubject && this.#known.get(subjectForm(certificateSubject))?.caller;
    }
    const [, token] = /^Bearer (.+)$/.exec(authorization) ?? [];
    // Nothing at all is no token, whatever hash somebody has put into the file by mistake.
    if (token === undefined) return undefined;
    const presented = tokenHash(token);
    return this.#known.get(presented)?.caller ?? (presented === this.#tokenHash ? ANY_CALLER : undefined);
  }

  /** Whether whoever reaches it may do everything. */
  get asksForNothing(): boolean {
    return !this.#namesCallers && this.#tokenHash === undefined;
  }

  #take(credential: string, caller: Caller, before: ReadonlyMap<string, Known>): void {
    const former = before.get(credential);
    if (former && sameRights(former.caller, caller)) {
      this.#known.set(credential, former);
      return;
    }
    const controller = new AbortController();
    const known = { caller: { ...caller, withdrawn: controller.signal }, withdraw: () => controller.abort() };
    this.#known.set(credential, known);
  }
}

function callerOf(name: string, { may, studios }: CallerEntry, credential: string): Caller {
  return { ...ANY_CALLER, name, may: new Set(may), studios: studios && new Set(studios), credential };
}

const sameRights = (a: Caller, b: Caller): boolean =>
  a.name === b.name && same(a.may, b.may) && same(a.studios, b.studios);

const same = (a?: ReadonlySet<string>, b?: ReadonlySet<string>): boolean =>
  a === b || (a !== undefined && b !== undefined && a.size === b.size && a.isSubsetOf(b));
