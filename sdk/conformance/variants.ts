import { answerOf } from './answers.ts';
import type { Call, Conversation } from './conversation.ts';

/** A conversation as it is held. */
export interface Variant {
  readonly calls: readonly Call[];
  /** In what it differs from others of its conversation; empty when it is the only one. */
  readonly label: string;
}

/** One for every byte after which an answer is to be cut; mostly, the conversation itself. */
export function variantsOf({ calls }: Conversation): Variant[] {
  const cuts = calls.flatMap(({ attempts }, call) =>
    attempts.flatMap((attempt, at) => (attempt.cutAfterBytes === 'each' ? [{ call, at, attempt }] : [])),
  );
  const [cut, ...more] = cuts;
  if (!cut) return [{ calls, label: '' }];
  if (more.length > 0) throw new Error('a conversation can cut one answer after each byte, not several');
  return Array.from({ length: answerOf(cut.attempt)?.bytes.length ?? 0 }, (_, cutAfterBytes) => ({
    label: `cut after ${cutAfterBytes} bytes: `,
    calls: calls.map((call, index) =>
      index === cut.call ? { ...call, attempts: call.attempts.with(cut.at, { ...cut.attempt, cutAfterBytes }) } : call,
    ),
  }));
}
