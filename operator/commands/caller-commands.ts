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
import { Option } from 'commander';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import {
  type CallerEntries,
  type CallerEntry,
  type CertificateSubject,
  MAX_TOKENS,
  parseCallers,
  subjectForm,
  tokenDigits,
  tokenHash,
} from '../../src/callers-file.ts';
import { CALLER_ROLES, type CallerRole } from '../../src/domain/caller.ts';
import { CommandFault } from '../command.ts';
import { program, runReported, showResult, showSecret } from './program.ts';

export function addCallerCommands(): void {
  const callers = program
    .command('callers')
    .description('manage the programs that may call the core, in the file of CORE_CALLERS_FILE');
  const fileOption = new Option('--file <path>', 'callers file').env('CORE_CALLERS_FILE').makeOptionMandatory();
  callers
    .command('new <name>')
    .description('add a caller, or a second token of one; a token is printed once')
    .addOption(new Option('--may <role...>', 'roles of a new caller').choices(CALLER_ROLES))
    .option('--studio <id...>', 'studios that a new caller has access to (default: all)')
    .option('--certificate <file>', 'certificate (PEM) that the caller presents instead of a token')
    .addOption(fileOption)
    .addHelpText('after', CALLERS_HELP)
    .action((name: string, { file, ...caller }: NewCaller & { readonly file: string }) =>
      runReported(() =>
        addCaller(file, name, caller, (token) =>
          showSecret({ name, token }, async () => 'the caller was left as it was'),
        ),
      ),
    );
  callers
    .command('list')
    .description('list all callers, without their tokens')
    .addOption(fileOption)
    .action(({ file }: { file: string }) => runReported(async () => showResult(listCallers(file))));
  callers
    .command('retire <name>')
    .description('remove one of the two tokens of a caller immediately, by default the older one')
    .option('--token <digits>', 'first digits of the hash of the token, as `callers list` prints them')
    .addOption(fileOption)
    .action((name: string, { token, file }: { token?: string; file: string }) =>
      runReported(async () => showResult(retireToken(file, name, token))),
    );
  callers
    .command('remove <name>')
    .description('remove a caller immediately')
    .addOption(fileOption)
    .action((name: string, { file }: { file: string }) =>
      runReported(async () => showResult(removeCaller(file, name))),
    );
}

const CALLERS_HELP = `
Roles:
  gateway   serve requests with an API key, and nothing else
  read      read leads, studios, sources, keys and the audit log
  crm       as read; also write leads, consume the change feed, maintain the
            directory and manage keys
  operator  maintain the directory, list and revoke keys, read the audit log,
            resend leads; cannot read leads or issue keys

Cores reload the file within seconds after a change. To rotate a token without
an outage: issue a second one with \`callers new NAME\` and give it to the caller;
once \`lead_intake_core_caller_calls_total\` shows that the first is no longer
used, run \`callers retire NAME\`.`;

/** A new caller, or an existing one that gets another token or certificate. */
interface NewCaller {
  /** Undefined: the caller exists. */
  readonly may?: readonly CallerRole[];
  /** Undefined: all studios. */
  readonly studio?: readonly string[];
  /** A PEM file with the certificate that it presents instead of a token. */
  readonly certificate?: string;
}

/**
 * Adds a caller to the file, which is created if it does not exist, or gives an existing caller a second token.
 *
 * @param show shows its token, which is not stored, before it is valid; not called when it presents a certificate
 * @throws CommandFault, the error of `show`
 */
async function addCaller(
  path: string,
  name: string,
  { may, studio: studios, certificate }: NewCaller,
  show: (token: string) => Promise<void>,
): Promise<void> {
  const token = certificate === undefined ? newCoreToken() : undefined;
  const { write } = changeOf(path, (callers) => {
    const former = Object.hasOwn(callers, name) ? callers[name] : undefined;
    if (former && (may || studios))
      throw new CommandFault(`caller ${name} exists: for a second token, leave out --may and --studio`);
    if (!former && !may) throw new CommandFault(`caller ${name} does not exist: to add it, give its roles with --may`);
    const entry: CallerEntry = former ?? { may: may ?? [], ...(studios && { studios }) };
    const changed =
      token === undefined ? withCertificate(name, entry, certificate as string) : withToken(name, entry, token);
    return { ...callers, [name]: changed };
  });
  if (token === undefined) return write();
  await show(token);
  try {
    write();
  } catch (error) {
    throw new CommandFault(`${(error as Error).message}; the token that was printed is not valid`);
  }
}

function withCertificate(name: string, entry: CallerEntry, certificate: string): CallerEntry {
  const certificateSubject = subjectIn(certificate);
  const known = entry.certificateSubject;
  if (known && subjectForm(known) !== subjectForm(certificateSubject)) {
    throw new CommandFault(
      `${name} has a certificate of another subject: add a caller of another name, and run \`callers remove ${name}\` once this one is no longer used`,
    );
  }
  return { ...entry, certificateSubject };
}

function withToken(name: string, entry: CallerEntry, token: string): CallerEntry {
  const { tokens = [] } = entry;
  if (tokens.length === MAX_TOKENS) {
    throw new CommandFault(
      `${name} has ${MAX_TOKENS} tokens: once the older one is no longer used, run \`callers retire ${name}\``,
    );
  }
  const created = new Date().toISOString().slice(0, 10);
  return { ...entry, tokens: [...tokens, { sha256: tokenHash(token), created }] };
}

/**
 * Removes one of the two tokens of a caller.
 *
 * @param digits the first digits of the token's hash; undefined: the older token
 * @throws CommandFault
 */
const retireToken = (path: string, name: string, digits?: string) =>
  change(path, (callers) => {
    const caller = existing(callers, name);
    const { tokens = [] } = caller;
    if (tokens.length < MAX_TOKENS)
      throw new CommandFault(`${name} has no second token: issue one with \`callers new ${name}\` first`);
    const [retired, another] =
      digits === undefined ? tokens : tokens.filter(({ sha256 }) => tokenDigits(sha256) === digits);
    if (!retired) throw new CommandFault(`${name} has no token ${digits}: see \`callers list\``);
    if (digits !== undefined && another)
      throw new CommandFault(`both tokens of ${name} begin with ${digits}: remove the caller and add it again`);
    return { ...callers, [name]: { ...caller, tokens: tokens.filter((token) => token !== retired) } };
  });

/** Removes a caller. @throws CommandFault */
const removeCaller = (path: string, name: string) =>
  change(path, (callers) => {
    existing(callers, name);
    const { [name]: _, ...others } = callers;
    return others;
  });

/** @throws CommandFault */
const listCallers = (path: string) => listed(callersIn(read(path)));

/** Returns callers without their secrets. Of tokens, the older one first, the digits are those in metrics. */
const listed = (callers: CallerEntries) =>
  Object.entries(callers).map(([name, { may, studios, tokens = [], certificateSubject }]) => ({
    name,
    may,
    studios,
    tokens: tokens.map(({ sha256, created }) => [tokenDigits(sha256), created].filter(Boolean).join(' of ')),
    certificateSubject,
  }));

function existing(callers: CallerEntries, name: string): CallerEntry {
  const caller = Object.hasOwn(callers, name) ? callers[name] : undefined;
  if (!caller) throw new CommandFault(`caller ${name} does not exist: see \`callers list\``);
  return caller;
}

function subjectIn(path: string): CertificateSubject {
  try {
    return new X509Certificate(readFileSync(path)).toLegacyObject().subject as unknown as CertificateSubject;
  } catch (error) {
    throw new CommandFault(`${path} has no certificate: ${(error as Error).message}`);
  }
}

/** Returns the text of the callers file; undefined: no file. */
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
    throw new CommandFault(`The file ${(error as Error).message}`);
  }
}

function change(path: string, changed: (callers: CallerEntries) => CallerEntries) {
  const { callers, write } = changeOf(path, changed);
  write();
  return listed(callers);
}

/** Returns the callers after a change, and a function that writes it. */
function changeOf(path: string, changed: (callers: CallerEntries) => CallerEntries) {
  const text = read(path);
  const callers = changed(callersIn(text));
  const whole = `${JSON.stringify({ callers }, null, 2)}\n`;
  callersIn(whole);
  return { callers, write: () => replaceFile(path, text, whole) };
}

/** Replaces the file atomically, because a core may read it at any moment. */
function replaceFile(path: string, former: string | undefined, text: string): void {
  const target = former === undefined ? path : realpathSync(path);
  const next = `${target}.${process.pid}`;
  const file = openSync(next, 'wx', 0o600);
  try {
    if (former !== undefined) {
      const { uid, gid, mode } = statSync(target);
      fchmodSync(file, mode & 0o777);
      // Without permission to change the owner, the core reports that it cannot read the file.
      if (process.getuid?.() === 0) chownSync(next, uid, gid);
    }
    writeFileSync(file, text);
    fsyncSync(file);
    if (read(path) !== former) throw new CommandFault('the file was changed by another process meanwhile: try again');
    renameSync(next, target);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}
