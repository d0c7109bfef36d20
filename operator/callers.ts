import { X509Certificate } from 'node:crypto';
import {
  chownSync,
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { newCoreToken } from '../common/rules/key-secret.ts';
import {
  type CallerEntries,
  type CallerEntry,
  type CertificateSubject,
  MAX_TOKENS,
  parseCallers,
  subjectForm,
  tokenDigits,
  tokenHash,
} from '../src/callers-file.ts';
import type { CallerRole } from '../src/domain/caller.ts';

/** What cannot be done with a file of callers; the message is for the operator. */
export class CallersFault extends Error {}

export const CALLERS_HELP = `
gateway   what requests with an API key need, and nothing else
read      see leads, studios, sources, keys and the audit
crm       that; and write leads, take their changes, keep the directory and manage keys
operator  the directory, seeing and revoking keys, the audit, and sending leads once more; no leads, and no way to make a key

A core reads the file again within seconds after each change. To change a token without an outage: \`callers new NAME\` makes a
second one; give it to the caller; once \`lead_intake_core_caller_calls_total\` shows that the former is not used any more,
\`callers retire NAME\`.`;

/** A caller, as people see it. */
export interface ListedCaller {
  readonly name: string;
  readonly may: readonly CallerRole[];
  /** Undefined: all. */
  readonly studios?: readonly string[] | undefined;
  /** How the hash of each token begins, as metrics and this list have it, and the day it was made; the older one first. */
  readonly tokens: readonly string[];
  readonly certificateSubject?: CertificateSubject | undefined;
}

/** A caller to be, or one that is to get another token or certificate. */
export interface NewCaller {
  readonly name: string;
  /** Undefined: the caller is there. */
  readonly may: readonly CallerRole[] | undefined;
  readonly studios: readonly string[] | undefined;
  /** A PEM file with the certificate that it presents in place of a token. */
  readonly certificate: string | undefined;
}

/**
 * Adds a caller to a file, which is made if it is not there, or gives one a second token.
 *
 * @returns its token, which is kept nowhere; undefined: it presents a certificate
 * @throws CallersFault
 */
export function addCaller(path: string, { name, may, studios, certificate }: NewCaller): string | undefined {
  const token = certificate === undefined ? newCoreToken() : undefined;
  change(path, (callers) => {
    const former = Object.hasOwn(callers, name) ? callers[name] : undefined;
    if (former && (may || studios))
      throw new CallersFault(`there is a caller ${name}: it gets a second token without --may and --studio`);
    if (!former && !may) throw new CallersFault(`there is no caller ${name}: a new one needs --may`);
    const entry: CallerEntry = former ?? { may: may ?? [], ...(studios && { studios }) };
    if (certificate !== undefined) {
      const certificateSubject = subjectIn(certificate);
      const known = entry.certificateSubject;
      if (known && subjectForm(known) !== subjectForm(certificateSubject)) {
        throw new CallersFault(
          `${name} has a certificate of another subject: add a caller of another name, and \`callers remove ${name}\` once nobody uses the former`,
        );
      }
      return { ...callers, [name]: { ...entry, certificateSubject } };
    }
    const { tokens = [] } = entry;
    if (tokens.length === MAX_TOKENS) {
      throw new CallersFault(
        `${name} has ${MAX_TOKENS} tokens: once nobody uses the older one, \`callers retire ${name}\``,
      );
    }
    const created = new Date().toISOString().slice(0, 10);
    return { ...callers, [name]: { ...entry, tokens: [...tokens, { sha256: tokenHash(token as string), created }] } };
  });
  return token;
}

/**
 * Takes one of its two tokens from a caller.
 *
 * @param digits how the hash of the token begins; undefined: the older one
 * @throws CallersFault
 */
export const retireToken = (path: string, name: string, digits?: string): ListedCaller[] =>
  change(path, (callers) => {
    const caller = existing(callers, name);
    const { tokens = [] } = caller;
    if (tokens.length < MAX_TOKENS)
      throw new CallersFault(`${name} has no second token: \`callers new ${name}\` makes one`);
    const [retired, another] =
      digits === undefined ? tokens : tokens.filter(({ sha256 }) => tokenDigits(sha256) === digits);
    if (!retired) throw new CallersFault(`${name} has no token ${digits}: \`callers list\` shows which it has`);
    if (digits !== undefined && another) throw new CallersFault(`both tokens of ${name} begin so`);
    return { ...callers, [name]: { ...caller, tokens: tokens.filter((token) => token !== retired) } };
  });

/** Takes a caller out. @throws CallersFault */
export const removeCaller = (path: string, name: string): ListedCaller[] =>
  change(path, (callers) => {
    existing(callers, name);
    const { [name]: _, ...others } = callers;
    return others;
  });

/** @throws CallersFault */
export const listCallers = (path: string): ListedCaller[] => listed(callersIn(read(path)));

const listed = (callers: CallerEntries): ListedCaller[] =>
  Object.entries(callers).map(([name, { may, studios, tokens = [], certificateSubject }]) => ({
    name,
    may,
    studios,
    tokens: tokens.map(({ sha256, created }) => [tokenDigits(sha256), created].filter(Boolean).join(' of ')),
    certificateSubject,
  }));

function existing(callers: CallerEntries, name: string): CallerEntry {
  const caller = Object.hasOwn(callers, name) ? callers[name] : undefined;
  if (!caller) throw new CallersFault(`there is no caller ${name}`);
  return caller;
}

function subjectIn(path: string): CertificateSubject {
  try {
    return new X509Certificate(readFileSync(path)).toLegacyObject().subject as unknown as CertificateSubject;
  } catch (error) {
    throw new CallersFault(`${path} has no certificate: ${(error as Error).message}`);
  }
}

/** What of a caller's file is there; undefined: no file. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function callersIn(text: string | undefined): CallerEntries {
  try {
    return text === undefined ? {} : parseCallers(text);
  } catch (error) {
    throw new CallersFault(`The file ${(error as Error).message}`);
  }
}

function change(path: string, changed: (callers: CallerEntries) => CallerEntries): ListedCaller[] {
  const text = read(path);
  const callers = changed(callersIn(text));
  const whole = `${JSON.stringify({ callers }, null, 2)}\n`;
  callersIn(whole);
  replaceFile(path, text, whole);
  return listed(callers);
}

/** A core reads it at any moment: it must find the former file or the new one, never a part. */
function replaceFile(path: string, former: string | undefined, text: string): void {
  const target = former === undefined ? path : realpathSync(path);
  const next = `${target}.${process.pid}`;
  const file = openSync(next, 'wx', 0o600);
  try {
    if (former !== undefined) {
      const { uid, gid, mode } = statSync(target);
      fchmodSync(file, mode & 0o777);
      // Whoever may not give files away keeps it, and is told by the core that it cannot be read.
      if (process.getuid?.() === 0) chownSync(next, uid, gid);
    }
    writeFileSync(file, text);
    fsyncSync(file);
    if (read(path) !== former) throw new CallersFault('somebody else has changed the file meanwhile: try again');
    renameSync(next, target);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}
