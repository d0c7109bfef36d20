import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Conversation, Topic } from './conversation.ts';
import type { Outcome } from './converse.ts';
import { makeVariants } from './variants.ts';
import { Worker } from './worker.ts';

/** The verdict on a conversation. */
export interface Verdict {
  readonly name: string;
  /** `not-supported`: the client's language does not support the call. `not-run`: this machine cannot run it. */
  readonly verdict: 'passed' | 'failed' | 'not-supported' | 'not-run';
  /** The number of variants: one for every byte of a response that is cut after each. */
  readonly variants: number;
  /** The faults of the client, or why the conversation was not run. */
  readonly reasons: readonly string[];
}

/** Options of a run. */
export interface SuiteOptions {
  /** The names or topics of the conversations to run. Default: all. */
  readonly only?: readonly string[];
  /** The working directory of the driver. Default: the current one. */
  readonly folder?: string;
  /** The number of concurrent driver processes, which mostly wait. Default: 12. */
  readonly drivers?: number;
  /** Called with each verdict as soon as it is known. */
  readonly onVerdict?: (verdict: Verdict) => void;
}

const FOLDER = join(import.meta.dirname, 'conversations');

/** The defaults of a WrittenCall. */
const DEFAULT_CALL = { request: { call: 'createLead' }, report: 'result' } as const;

/** The number of failed variants after which the rest of a conversation is skipped. */
const MAX_FAILURES = 3;

/** Returns all conversations, their names prefixed with that of the file: `written/no-after-a-refusal`. */
export function readConversations(): Conversation[] {
  return readdirSync(FOLDER).flatMap((file) => {
    const { conversations }: Topic = JSON.parse(readFileSync(join(FOLDER, file), 'utf8'));
    return conversations.map(({ name, calls, ...rest }) => ({
      ...rest,
      name: `${basename(file, '.json')}/${name}`,
      calls: calls.map((call) => ({ ...DEFAULT_CALL, ...call })),
    }));
  });
}

/**
 * Runs the conversations with driver processes.
 *
 * @param command the driver's program and its arguments
 * @throws Error when `only` contains an unknown name
 */
export async function runSuite(
  command: readonly string[],
  { only, folder = '.', drivers = 12, onVerdict = () => {} }: SuiteOptions = {},
): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  const report = (verdict: Verdict) => {
    verdicts.push(verdict);
    onVerdict(verdict);
  };
  const tasks = chosen(only).map((conversation) => ({
    name: conversation.name,
    variants: makeVariants(conversation),
    outcomes: [] as Outcome[],
  }));
  // Conversations with many variants run last, so that all drivers stay busy until the end.
  const queue = tasks
    .toSorted((a, b) => a.variants.length - b.variants.length)
    .flatMap((task) => task.variants.map((variant) => ({ task, variant })));
  const work = async () => {
    const worker = new Worker(command, folder);
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { task, variant } = next;
      const hasFailed = task.outcomes.filter(({ faults }) => faults.length > 0).length >= MAX_FAILURES;
      const { faults, ...outcome } = hasFailed ? { faults: [] } : await worker.run(variant);
      task.outcomes.push({ faults: faults.map((fault) => variant.label + fault), ...outcome });
      if (task.outcomes.length === task.variants.length) report(decideVerdict(task.name, task.outcomes));
    }
    const faults = await worker.end();
    if (faults.length > 0) report(decideVerdict('the end of the driver', [{ faults }]));
  };
  await Promise.all(Array.from({ length: Math.min(drivers, queue.length) }, work));
  return verdicts;
}

function chosen(only: readonly string[] | undefined): Conversation[] {
  const all = readConversations();
  if (!only) return all;
  const isOf = ({ name }: Conversation, wanted: string) => name === wanted || name.startsWith(`${wanted}/`);
  const unknown = only.filter((wanted) => !all.some((conversation) => isOf(conversation, wanted)));
  if (unknown.length > 0) throw new Error(`there is no conversation ${unknown.join(', ')}`);
  return all.filter((conversation) => only.some((wanted) => isOf(conversation, wanted)));
}

function decideVerdict(name: string, outcomes: readonly Outcome[]): Verdict {
  const of = { name, variants: outcomes.length };
  const faults = outcomes.flatMap((outcome) => outcome.faults);
  if (faults.length > 0) return { ...of, verdict: 'failed', reasons: faults };
  const [unsupported, notRun] = [outcomes.find((each) => each.unsupported), outcomes.find((each) => each.notRun)];
  if (unsupported?.unsupported) return { ...of, verdict: 'not-supported', reasons: [unsupported.unsupported] };
  if (notRun?.notRun) return { ...of, verdict: 'not-run', reasons: [notRun.notRun] };
  return { ...of, verdict: 'passed', reasons: [] };
}
