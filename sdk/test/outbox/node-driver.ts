import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { createLeadIntakeClient, type LeadCapture } from '../../index.ts';
import {
  createOutbox,
  createOutboxPage,
  type Difference,
  keyFor,
  type Outbox,
  type PageRequest,
  type Reconciliation,
  type SettledLead,
  type WaitingLeads,
} from '../../outbox/index.ts';

/** How the transaction of an added lead ends. */
type End = 'commit' | 'rollback' | 'hang' | 'commit-anyway';

/** The arguments of a command; see README.md. */
interface Arguments {
  readonly leads: readonly { readonly capture: LeadCapture; readonly key?: string; readonly end?: End }[];
  readonly key: string;
  readonly capture?: LeadCapture;
  readonly limit?: number;
  readonly keepSettledDays?: number;
  readonly onSettled?: 'print' | 'throw';
  readonly onWaiting?: 'print' | 'throw';
  readonly pollMs?: number;
  readonly maxMs?: number;
  readonly restart?: boolean;
  readonly onDifference?: 'print';
  readonly mayCreate?: boolean;
  readonly requests: readonly PageRequest[];
  readonly mayCompare?: boolean;
  readonly lazily?: boolean;
  readonly before?: string;
  readonly submissions: readonly {
    readonly formKey: string | null;
    readonly capture: LeadCapture;
    readonly at: string;
  }[];
}

/** A form handler's connection to either database. */
interface Website {
  readonly connection: DatabaseSync | pg.Client | pg.Pool;
  execute(sql: string, ...values: string[]): Promise<unknown>;
  close(): Promise<void>;
}

/** A line of stdin; see README.md. */
interface Command {
  readonly command: string;
  readonly arguments: Arguments;
  readonly settings: Settings;
}

interface Settings {
  readonly database: { readonly kind: string; readonly file: string };
  readonly table?: string;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly deadlineMs?: number;
  readonly attemptTimeoutMs?: number;
  readonly onAttempt?: 'throw';
}

let rest = '';
for await (const text of process.stdin.setEncoding('utf8')) {
  const lines = (rest + text).split('\n');
  rest = lines.pop() ?? '';
  for (const line of lines) await report(JSON.parse(line));
}

async function report(command: Command): Promise<void> {
  try {
    print({ result: await runCommand(command) });
  } catch (error) {
    print({ error: error instanceof Error ? error.message : String(error) });
  }
}

async function runCommand(line: Command): Promise<object> {
  const { command, arguments: input, settings } = line;
  const { table } = settings;
  const outbox = createOutbox(table === undefined ? {} : { table });
  if (command === 'set-up-sql') return { sql: outbox.setUpSql() };
  if (command === 'keys-for')
    return { keys: input.submissions.map(({ formKey, capture, at }) => keyFor(formKey, capture, new Date(at))) };
  const website = await openWebsite(line);
  try {
    return await carriedOut(outbox, website, line);
  } finally {
    await website.close();
  }
}

async function carriedOut(outbox: Outbox, website: Website, line: Command): Promise<object> {
  const { connection } = website;
  const { command, arguments: input, settings } = line;
  const { leads, key, capture, limit, keepSettledDays, onSettled, onWaiting, pollMs } = input;
  const options = {
    ...(limit !== undefined && { limit }),
    ...(keepSettledDays !== undefined && { keepSettledDays }),
    ...(onSettled !== undefined && { onSettled: (lead: SettledLead) => notify(lead, onSettled) }),
    ...(onWaiting !== undefined && { onWaiting: (waiting: WaitingLeads) => tell(waiting, onWaiting) }),
  };
  const client = () => clientBy(settings);
  switch (command) {
    case 'set-up':
      await outbox.setUp(connection);
      return {};
    case 'add':
      for (const lead of leads) await add(outbox, website, lead);
      return {};
    case 'deliver':
      if (input.before !== undefined) await website.execute(input.before);
      return outbox.deliver(connection, client(), options);
    case 'run': {
      const stop = new AbortController();
      process.once('SIGTERM', () => stop.abort());
      const polling = pollMs !== undefined && { pollMs };
      await outbox.run(connection, client(), { ...options, ...polling, signal: stop.signal });
      return {};
    }
    case 'needs-attention': {
      const { count, entries } = await outbox.needsAttention(connection, limit === undefined ? {} : { limit });
      const shown = entries.map(({ idempotencyKey, createdAt, ...entry }) => ({
        key: idempotencyKey,
        createdAt: createdAt.getTime(),
        ...entry,
      }));
      return { count, entries: shown };
    }
    case 'retry':
      await outbox.retry(connection, key, capture);
      return {};
    case 'discard':
      await outbox.discard(connection, key);
      return {};
    case 'reconcile':
      if (input.before !== undefined) await website.execute(input.before);
      return {
        ...shown(await outbox.reconcile(connection, client(), comparing(input))),
        peakKiB: process.resourceUsage().maxRSS,
      };
    case 'last-reconciliation': {
      const last = await outbox.lastReconciliation(connection);
      return last === null ? {} : shown(last);
    }
    case 'send-again':
      await outbox.sendAgain(connection, client(), key, {
        ...(capture && { capture }),
        mayCreate: input.mayCreate === true,
      });
      return {};
    case 'page': {
      const made = input.lazily === true ? client : client();
      const page = createOutboxPage({ outbox, connection, client: input.mayCompare === false ? undefined : made });
      const responses = [];
      for (const request of input.requests) responses.push(await page.respond(request));
      return { responses };
    }
    default:
      throw new Error(`no command is named ${command}`);
  }
}

/** Adds a lead in a transaction, as a form handler does. */
async function add(
  outbox: Outbox,
  website: Website,
  { capture, key, end = 'commit' }: Arguments['leads'][number],
): Promise<void> {
  const options = key === undefined ? {} : { idempotencyKey: key };
  const { connection, execute } = website;
  await execute('BEGIN');
  await execute('INSERT INTO visits (note) VALUES (?)', String(capture?.displayName));
  let added: string;
  try {
    // `add` has two overloads.
    added =
      connection instanceof DatabaseSync
        ? outbox.add(connection, capture, options)
        : await outbox.add(connection, capture, options);
  } catch (error) {
    await execute(end === 'commit-anyway' ? 'COMMIT' : 'ROLLBACK');
    if (end !== 'commit-anyway') throw error;
    print({ refused: (error as Error).message });
    return;
  }
  if (end === 'hang') {
    print({ hanging: added });
    await new Promise(() => setInterval(() => {}, 60_000));
  }
  await execute(end === 'rollback' ? 'ROLLBACK' : 'COMMIT');
  print(end === 'rollback' ? { rolledBack: added } : { added });
}

function notify({ idempotencyKey, outcome, leadId, capture, reason }: SettledLead, then: 'print' | 'throw'): void {
  print({ settled: { key: idempotencyKey, outcome, leadId, capture, reason } });
  if (then === 'throw') throw new Error('listener failed');
}

function tell({ count, oldest, reasons }: WaitingLeads, then: 'print' | 'throw'): void {
  print({ waits: { count, oldest: oldest.getTime(), reasons } });
  if (then === 'throw') throw new Error('listener failed');
}

function comparing({ maxMs, restart, onDifference }: Arguments) {
  return {
    ...(maxMs !== undefined && { maxMs }),
    ...(restart !== undefined && { restart }),
    ...(onDifference !== undefined && {
      onDifference: (difference: Difference) => print({ difference: different(difference) }),
    }),
  };
}

function different({ idempotencyKey: key, createdAt, ...rest }: Difference) {
  return { key, createdAt: createdAt.getTime(), ...rest };
}

function shown({ startedAt, since, differences, ...rest }: Reconciliation) {
  return {
    ...rest,
    startedAt: startedAt.getTime(),
    since: since?.getTime() ?? null,
    differences: differences.map(different),
  };
}

function fail(): never {
  throw new Error('listener failed');
}

function clientBy({ baseUrl, apiKey, deadlineMs, attemptTimeoutMs, onAttempt }: Settings) {
  return createLeadIntakeClient({
    baseUrl,
    apiKey,
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(attemptTimeoutMs !== undefined && { attemptTimeoutMs }),
    ...(onAttempt !== undefined && { onAttempt: fail }),
  });
}

async function openWebsite({ command, settings }: Command): Promise<Website> {
  const { kind, file, ...address } = settings.database;
  if (kind === 'sqlite') {
    const connection = new DatabaseSync(file, { timeout: 10_000 });
    return {
      connection,
      execute: async (sql, ...values) => connection.prepare(sql).run(...values),
      close: async () => connection.close(),
    };
  }
  // A worker uses a pool, which reconnects after a failure; a transaction needs one connection.
  if (command === 'run') {
    const pool = new pg.Pool(address);
    pool.on('error', () => {});
    return {
      connection: pool,
      execute: (sql, ...values) => pool.query(sql.replace('?', '$1'), values),
      close: () => pool.end(),
    };
  }
  const connection = new pg.Client(address);
  await connection.connect();
  return {
    connection,
    execute: (sql, ...values) => connection.query(sql.replace('?', '$1'), values),
    close: () => connection.end(),
  };
}

function print(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
