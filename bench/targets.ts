import { type ChildProcess, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { newId } from '../src/domain/new-id.ts';
import { nextMessage, startProcess, temporaryFolder } from './processes.ts';
import type { Target } from './workload.ts';

/** Something that load is put on. */
export interface RunningTarget extends Target {
  readonly name: string;
  /** The processes that do its work, by their name in the report. */
  readonly processes: Readonly<Record<string, ChildProcess>>;
}

/** Starts the floor on a fresh database. */
export async function startFloor(): Promise<RunningTarget> {
  const secret = `lik_${randomBytes(36).toString('base64url')}`;
  const env = { FLOOR_DATABASE: join(temporaryFolder(), 'leads.db'), FLOOR_SECRET: secret };
  const floor = startProcess('bench/floor.ts', { env });
  const { url } = await nextMessage<{ url: string }>(floor);
  return { name: 'floor', url, secret, sourceId: newId(), processes: { floor } };
}

/** Starts core and gateway, each by itself, on a fresh database. */
export async function startProduct(): Promise<RunningTarget> {
  const env = { ...SETTINGS, DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}` };
  const { secret, sourceId } = makeDemo(env);
  const core = startProcess('src/main.ts', { env });
  const { url: CORE_URL } = await nextMessage<{ url: string }>(core);
  const gateway = startProcess('gateway/main.ts', { env: { ...env, CORE_URL } });
  const { url } = await nextMessage<{ url: string }>(gateway);
  return { name: 'product', url, secret, sourceId, processes: { core, gateway } };
}

/** As production runs it, but for a quota that is counted and never reached. */
const SETTINGS = {
  CORE_PORT: '0',
  GATEWAY_PORT: '0',
  CORE_TOKEN: randomBytes(24).toString('base64url'),
  LOG_LEVEL: 'warn',
  QUOTA_LIMIT: '1000000000',
  SHUTDOWN_DRAIN_MS: '0',
} as const;

/** Makes a studio with an owner, a source and a key. */
function makeDemo(env: Readonly<Record<string, string>>): { readonly secret: string; readonly sourceId: string } {
  const command = [join(import.meta.dirname, '../src/cli.ts'), 'demo', '--json'];
  return JSON.parse(execFileSync(process.execPath, command, { encoding: 'utf8', env }));
}
