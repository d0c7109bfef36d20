import { makeAnswer } from './answers.ts';
import type { Call, Conversation } from './conversation.ts';

/** A conversation as it is run. */
export interface Variant {
  readonly calls: readonly Call[];
  /** The difference from other variants of the conversation; empty when there is only one. */
  readonly label: string;
}

/** Returns one variant for every byte after which a response is cut; otherwise, only the conversation itself. */
export function makeVariants({ calls }: Conversation): Variant[] {
  const cuts = calls.flatMap(({ attempts }, call) =>
    attempts.flatMap((attempt, at) => (attempt.cutAfterBytes === 'each' ? [{ call, at, attempt }] : [])),
  );
  const [cut, ...more] = cuts;
  if (!cut) return [{ calls, label: '' }];
  if (more.length > 0) throw new Error('a conversation can cut only one response after each byte');
  return Array.from({ length: makeAnswer(cut.attempt)?.bytes.length ?? 0 }, (_, cutAfterBytes) => ({
    label: `cut after ${cutAfterBytes} bytes: `,
    calls: calls.map((call, index) =>
      index === cut.call ? { ...call, attempts: call.attempts.with(cut.at, { ...cut.attempt, cutAfterBytes }) } : call,
    ),
  }));
}
