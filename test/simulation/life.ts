import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../tools/processes.ts';
import { type Plan, planFrom } from './plan.ts';
import { withMoreSteps } from './replica-set-scenarios.ts';

/** The events of a life, and the broken promises. */
export interface Life {
  readonly violations: readonly string[];
  /** Groups of observations that were too large to check. */
  readonly unknown: readonly string[];
  /** The share of requests that were allowed to fail, because something on their path was disturbed. */
  readonly excused: number;
  /** The actions and observations of each party, in order. */
  readonly story: string;
  readonly events: number;
  readonly virtualMs: number;
  /** The processor time of the life; milliseconds. */
  readonly processorMs: number;
  /** A hash of all events with their bytes; a function of seed and plan. */
  readonly trace: string;
  readonly lastEvents: readonly string[];
}

/** The timeout of a life on a busy machine, and what each second of delays adds to it; milliseconds. */
const TIMEOUT_MS = 1_800_000;
const PER_SECOND_MS = 500;

/** The databases on which a life can run. */
export const DATABASES = ['sqlite', 'mongodb'] as const;
export type Database = (typeof DATABASES)[number];

/** Returns the plan of a seed. On MongoDB, its steps include faults of the replica set and of Redis. */
export function simulatedPlanFrom(
  seed: number,
  steps: number,
  database: Database = 'sqlite',
  hours = 0,
  often?: string,
): Plan {
  const plan = planFrom(seed, steps, hours, often);
  return database === 'mongodb' ? { ...plan, steps: withMoreSteps(seed, plan.steps, often) } : plan;
}

/** Returns the environment variables that plant a bug in a process. */
export const plantedBug = (name: string): Readonly<Record<string, string>> => ({
  PLANTED_BUG: name,
  NODE_OPTIONS: `--import=${new URL('../planted-bugs/plant-in-process.ts', import.meta.url)}`,
});

/**
 * Returns the environment variables that make a process load the sources as a diff changes them (`git diff`). The files
 * themselves stay unchanged.
 *
 * @throws Error when the diff does not apply
 */
export function changedBy(diff: string): Readonly<Record<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-changed-'));
  process.once('exit', () => rmSync(folder, { recursive: true }));
  for (const [, file = ''] of readFileSync(diff, 'utf8').matchAll(/^\+\+\+ b\/([^\t\n]+)/gm))
    cpSync(join(ROOT, file), join(folder, file));
  execFileSync('git', ['apply', '--unidiff-zero', resolve(diff)], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  return { ...plantedBug(''), PLANTED_FILES: folder };
}

/** Runs a life in its own process, so that no state of an earlier life remains. */
export async function live(
  seed: number,
  plan: Plan,
  {
    database = 'sqlite',
    options = [],
    env = {},
  }: {
    readonly database?: Database;
    readonly options?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<Life> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-simulation-'));
  try {
    const [planFile, lifeFile] = [join(folder, 'plan.json'), join(folder, 'life.json')];
    writeFileSync(planFile, JSON.stringify(plan));
    const args = [
      '--disable-warning=ExperimentalWarning',
      // Lives create many short-lived objects.
      '--max-semi-space-size=64',
      join(import.meta.dirname, 'live.ts'),
      `${seed}`,
      planFile,
      lifeFile,
      '--database',
      database,
    ];
    const delaysMs = plan.steps.reduce((sum, { afterMs }) => sum + afterMs, 0);
    const timeoutMs = TIMEOUT_MS + Math.ceil(delaysMs / 1000) * PER_SECOND_MS;
    await promisify(execFile)(process.execPath, [...args, ...options], {
      env: { ...process.env, NODE_OPTIONS: '', TMPDIR: folder, ...env },
      timeout: timeoutMs,
      // The product would take another signal for a request to stop, and exit successfully.
      killSignal: 'SIGKILL',
    });
    return JSON.parse(readFileSync(lifeFile, 'utf8'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
