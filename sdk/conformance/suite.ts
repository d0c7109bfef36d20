import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Conversation, Topic } from './conversation.ts';
import type { Outcome } from './converse.ts';
import { variantsOf } from './variants.ts';
import { Worker } from './worker.ts';

/** What came of a conversation. */
export interface Verdict {
  readonly name: string;
  /** `not-supported`: the client's language cannot do what is asked. `not-run`: this machine cannot. */
  readonly verdict: 'passed' | 'failed' | 'not-supported' | 'not-run';
  /** How many variants it has: one for every byte, where an answer is cut at each. */
  readonly variants: number;
  /** What the client did wrong, or why the conversation was not held. */
  readonly reasons: readonly string[];
}

/** How the suite is run. */
export interface SuiteOptions {
  /** Those to be held, by their names or their topics; unless given, all. */
  readonly only?: readonly string[];
  /** Where the driver is started; unless given, here. */
  readonly folder?: string;
  /** How many processes of the driver there are at a time; unless told, 12. Mostly they wait. */
  readonly drivers?: number;
  /** Gets each verdict when it is known. */
  readonly onVerdict?: (verdict: Verdict) => void;
}

const FOLDER = join(import.meta.dirname, 'conversations');

/** So many variants in which the client is wrong tell enough. */
const MAX_FAILURES = 3;

/** All conversations, each with the name of its file before its own: `written/no-after-a-refusal`. */
export function readConversations(): Conversation[] {
  return readdirSync(FOLDER).flatMap((file) => {
    const { conversations }: Topic = JSON.parse(readFileSync(join(FOLDER, file), 'utf8'));
    return conversations.map(({ name, ...rest }) => ({ ...rest, name: `${basename(file, '.json')}/${name}` }));
  });
}

/**
 * Holds the conversations with processes of a driver.
 *
 * @param command the driver's program and its arguments
 * @throws Error when there is no conversation of a name that is asked for
 */
export async function runSuite(
  command: readonly string[],
  { only, folder = '.', drivers = 12, onVerdict = () => {} }: SuiteOptions = {},
): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  const tell = (verdict: Verdict) => {
    verdicts.push(verdict);
    onVerdict(verdict);
  };
  const tasks = chosen(only).map((conversation) => ({
    name: conversation.name,
    variants: variantsOf(conversation),
    outcomes: [] as Outcome[],
  }));
  // Those with many variants come last: they leave no driver without work.
  const queue = tasks
    .toSorted((a, b) => a.variants.length - b.variants.length)
    .flatMap((task) => task.variants.map((variant) => ({ task, variant })));
  const work = async () => {
    const worker = new Worker(command, folder);
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { task, variant } = next;
      const isClear = task.outcomes.filter(({ faults }) => faults.length > 0).length >= MAX_FAILURES;
      const { faults, ...outcome } = isClear ? { faults: [] } : await worker.hold(variant);
      task.outcomes.push({ faults: faults.map((fault) => variant.label + fault), ...outcome });
      if (task.outcomes.length === task.variants.length) tell(verdictOf(task.name, task.outcomes));
    }
    const faults = await worker.end();
    if (faults.length > 0) tell(verdictOf('the end of the driver', [{ faults }]));
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

function verdictOf(name: string, outcomes: readonly Outcome[]): Verdict {
  const of = { name, variants: outcomes.length };
  const faults = outcomes.flatMap((outcome) => outcome.faults);
  if (faults.length > 0) return { ...of, verdict: 'failed', reasons: faults };
  const [unsupported, notRun] = [outcomes.find((each) => each.unsupported), outcomes.find((each) => each.notRun)];
  if (unsupported?.unsupported) return { ...of, verdict: 'not-supported', reasons: [unsupported.unsupported] };
  if (notRun?.notRun) return { ...of, verdict: 'not-run', reasons: [notRun.notRun] };
  return { ...of, verdict: 'passed', reasons: [] };
}
