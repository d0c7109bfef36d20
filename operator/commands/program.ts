import { fstatSync, statSync, writeFileSync } from 'node:fs';
import { devNull } from 'node:os';
import { Command } from 'commander';
import { errorSummary, formatStacks } from '../../common/error-summary.ts';
import { printable, printableJson, printableLines } from '../../common/printable.ts';
import { SettingsError } from '../../common/settings.ts';
import { Throttle } from '../../common/throttle.ts';
import { readDatabaseUrl } from '../../src/config.ts';
import { newId, systemClock } from '../../src/domain/new-id.ts';
import { Refusal } from '../../src/domain/refusal.ts';
import { absentFileError, absentFileIn, openStore } from '../../src/store/open-store.ts';
import { StoreUnavailable, UnreadableRecord } from '../../src/store/port/faults.ts';
import { LOG_STAYS } from '../../src/store/port/listeners.ts';
import type { Dependencies } from '../../src/usecases/dependencies.ts';
import { CommandFault } from '../command.ts';
import { OutputFault, print } from '../standard-output.ts';
import { type TextFields, tableText } from '../table-text.ts';

/** The command line. Each file in this folder adds a group of commands. */
export const program = new Command('lead-intake')
  .description('Administers studios, API keys and leads on the database of DATABASE_URL, and examines deployments.')
  .option('--json', 'print JSON instead of text')
  .showHelpAfterError('(add --help for usage)')
  .configureOutput({ writeOut });

/** How often a long command prints its progress; milliseconds. */
const PROGRESS_INTERVAL_MS = 5000;

// Requests to this machine never use a proxy from the environment.
const { no_proxy: without = process.env.NO_PROXY } = process.env;
process.env.no_proxy = ['localhost', '127.0.0.1', '[::1]', ...(without ? [without] : [])].join();

// Each write of a result reports its own error. Messages on standard error may be lost.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

/** Prints a result as JSON or text, depending on `--json`. @throws OutputFault */
export function showResult(result: unknown): Promise<void> {
  return print(resultText(result, isJson()));
}

/**
 * Prints a result with a secret that is shown only once. Withdraws the secret when it cannot be written: its reader is gone, or the output
 * is discarded.
 *
 * @param withdraw returns what happened to the secret
 */
export async function showSecret(result: unknown, withdraw: () => Promise<string>): Promise<void> {
  try {
    refuseNullDevice();
    await showResult(result);
  } catch (error) {
    if (!(error instanceof OutputFault)) throw error;
    throw new OutputFault(`${error.message}; ${await withdraw()}`);
  }
}

/** Refuses a standard output that discards everything. Node replaces a closed output with the null device. @throws OutputFault */
function refuseNullDevice(): void {
  const stats = fstatSync(process.stdout.fd);
  const isNull = stats.isCharacterDevice() && stats.rdev === statSync(devNull).rdev;
  if (isNull) throw new OutputFault('the standard output is closed, or is the null device');
}

export function isJson(): boolean {
  return program.opts<{ json?: boolean }>().json === true;
}

/** Prints an unreadable record that a command skips. The command then exits with status 1. */
export function reportUnreadable({ message }: UnreadableRecord): void {
  console.error(message);
  process.exitCode = 1;
}

/**
 * Runs a command on the store and prints its result, if it has one.
 *
 * @param mayCreate whether to create a missing file; other commands would report an empty database instead of a wrong path
 */
export function runOnStore(command: (deps: Dependencies) => Promise<unknown>, mayCreate?: 'mayCreate'): Promise<void> {
  return runReported(async () => {
    const databaseUrl = readDatabaseUrl(process.env).reveal();
    const absent = absentFileIn(databaseUrl);
    if (absent !== undefined && !mayCreate) throw absentFileError(absent);
    const store = await openStore(databaseUrl, { report: reportUnreadable, logStays: () => console.error(LOG_STAYS) });
    if (absent !== undefined) console.error(`a new database was created: ${absent}`);
    try {
      const result = await command({ store, clock: systemClock, newId });
      if (result !== undefined) await showResult(result);
    } finally {
      await store.close();
    }
  });
}

/** Runs a command, and prints a failure on standard error. A closed pipe is no failure: its reader has read enough. */
export async function runReported(command: () => Promise<void>): Promise<void> {
  try {
    await command();
  } catch (error) {
    if (error instanceof OutputFault && error.isClosedPipe) return;
    console.error(printableLines(describeFailure(error)));
    process.exitCode = 1;
  }
}

/** Prints the help. The process exits right after it. */
function writeOut(text: string): void {
  try {
    writeFileSync(process.stdout.fd, text);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return;
    console.error(`the standard output: ${errorSummary(error)}`);
    process.exit(1);
  }
}

/** Returns a signal that Ctrl-C or SIGTERM aborts. */
export function abortOnSignal(reason?: unknown): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort(reason));
  return controller.signal;
}

/** Returns a function that prints progress on standard error once per interval. Short commands print none. */
export function progressPrinter(): (text: string) => void {
  const throttle = new Throttle(PROGRESS_INTERVAL_MS);
  throttle.allow();
  return (text) => throttle.allow() && console.error(text);
}

/** Returns one line for each fault that the operator can fix, or the stack of a bug. */
function describeFailure(error: unknown): string {
  if (error instanceof SettingsError || error instanceof CommandFault) return error.message;
  if (error instanceof StoreUnavailable || error instanceof UnreadableRecord) return errorSummary(error);
  // A file system error about a file that an argument names.
  if (error instanceof Error && 'syscall' in error) return error.message;
  if (!(error instanceof Refusal)) return formatStacks(error);
  const faults = error.faults.map(({ field, message }) => `  ${field} ${message}`);
  return [`${error.reason}: ${error.message}`, ...faults].join('\n');
}

/** Returns a result as JSON, a table, or a list of fields. */
function resultText(result: unknown, json: boolean): string {
  if (json) return `${printableJson(result)}\n`;
  if (!Array.isArray(result)) return fieldsText(textFields(result));
  const records = result.map(textFields);
  if (records.length === 0) return 'none\n';
  return tableText(records, process.stdout.columns || 80) ?? records.map(fieldsText).join('\n');
}

const fieldsText = (fields: TextFields): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(12)} ${value}\n`)
    .join('');

function textFields(record: unknown): TextFields {
  return Object.fromEntries(Object.entries(record as object).map(([name, value]) => [name, formatValue(value)]));
}

function formatValue(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(formatValue).join(', ');
  return typeof value === 'object' ? Object.values(value).map(formatValue).join(' ') : printable(String(value));
}
