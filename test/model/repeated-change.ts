import type { System } from './explorer.ts';

/** How a change of one record is attempted again. The tests break each rule to show why it is needed. */
export interface RepetitionRules {
  /** Does a further attempt look first whether an earlier one took effect? */
  readonly looks: boolean;
  /** Does the write itself do nothing if the record has the change already? */
  readonly isConditional: boolean;
  /** Does it give up if the identity of its change may have been dropped from the record? */
  readonly givesUp: boolean;
}

export const REPETITION_RULES: RepetitionRules = { looks: true, isConditional: true, givesUp: true };

export interface RepetitionScenario {
  /** The number of writers, each with one change of the record. */
  readonly writers: number;
  /** The number of identities that the record keeps. */
  readonly kept: number;
  /** Whether an attempt may be carried out after its writer has stopped waiting for it. */
  readonly isLate: boolean;
}

const MAX_ATTEMPTS = 3;

interface Writer {
  readonly at: 'idle' | 'waiting' | 'unsure' | 'done' | 'unknown';
  readonly attempts: number;
  /** The newest identity that the record had before the first attempt; null: none. */
  readonly newest?: number | null;
}

interface RecordWorld {
  readonly writers: readonly Writer[];
  /** Attempts on their way to the record, by writer. */
  readonly sent: readonly number[];
  /** Replies on their way back, by writer. */
  readonly replies: readonly number[];
  /** The identities of the latest changes, oldest first. */
  readonly applied: readonly number[];
  /** Every write that took effect, by writer. */
  readonly effects: readonly number[];
}

/** What must hold in every state; each promise by its name. */
export const REPETITION_PROMISES = {
  'no attempt undoes what others wrote since an earlier one took effect': ({ effects }) =>
    effects.every((writer, index) => {
      const before = effects.lastIndexOf(writer, index - 1);
      return index === 0 || before < 0 || before === index - 1;
    }),
  'a change that its writer knows to be made took effect': ({ writers, effects }) =>
    writers.every(({ at }, writer) => at !== 'done' || effects.includes(writer)),
} as const satisfies { readonly [name: string]: (world: RecordWorld) => boolean };

/** Several writers change one record; attempts, and replies to them, may be lost or late. */
export function repeatedChange(
  { writers, kept, isLate }: RepetitionScenario,
  changes: Partial<RepetitionRules> = {},
): System<RecordWorld> {
  const rules = { ...REPETITION_RULES, ...changes };
  return {
    initial: {
      writers: Array.from({ length: writers }, () => ({ at: 'idle', attempts: 0 })),
      sent: [],
      replies: [],
      applied: [],
      effects: [],
    },
    *steps(world) {
      for (const [writer, state] of world.writers.entries()) {
        if (state.at === 'idle') yield [`writer ${writer} sends its change`, send(world, writer, state)];
        if (state.at === 'unsure') yield [`writer ${writer} tries again`, tryAgain(world, writer, state)];
        if (state.at !== 'waiting') continue;
        const unsure = withWriter(world, writer, { ...state, at: 'unsure' });
        if (world.replies.includes(writer)) {
          const replies = without(world.replies, writer);
          yield [
            `writer ${writer} gets its reply`,
            { ...withWriter(world, writer, { ...state, at: 'done' }), replies },
          ];
          yield [`the reply to writer ${writer} is lost`, { ...unsure, replies }];
        } else if (world.sent.includes(writer)) {
          yield [`the attempt of writer ${writer} is lost`, { ...unsure, sent: without(world.sent, writer) }];
          if (isLate) yield [`writer ${writer} stops waiting`, unsure];
        }
      }
      for (const writer of new Set(world.sent))
        yield [`the attempt of writer ${writer} arrives`, arrive(world, writer)];
    },
    fault: (world) => Object.entries(REPETITION_PROMISES).find(([, isKept]) => !isKept(world))?.[0],
    isSettled: (world) => world.writers.every(({ at }) => at === 'done' || at === 'unknown'),
  };

  function send(world: RecordWorld, writer: number, { attempts, newest }: Writer): RecordWorld {
    const before = newest === undefined ? (world.applied.at(-1) ?? null) : newest;
    const next = withWriter(world, writer, { at: 'waiting', attempts: attempts + 1, newest: before });
    return { ...next, sent: [...world.sent, writer].sort() };
  }

  function tryAgain(world: RecordWorld, writer: number, state: Writer): RecordWorld {
    const { applied } = world;
    if (rules.looks && applied.includes(writer)) return withWriter(world, writer, { ...state, at: 'done' });
    const isDropped = state.newest === null ? applied.length >= kept : !applied.includes(state.newest as number);
    if ((rules.givesUp && isDropped) || state.attempts === MAX_ATTEMPTS) {
      return withWriter(world, writer, { ...state, at: 'unknown' });
    }
    return send(world, writer, state);
  }

  function arrive(world: RecordWorld, writer: number): RecordWorld {
    const sent = without(world.sent, writer);
    const isAwaited = world.writers[writer]?.at === 'waiting' && !sent.includes(writer);
    const replies = isAwaited ? [...world.replies, writer].sort() : world.replies;
    if (rules.isConditional && world.applied.includes(writer)) return { ...world, sent, replies };
    const applied = [...world.applied, writer].slice(-kept);
    return { ...world, sent, replies, applied, effects: [...world.effects, writer] };
  }
}

const withWriter = (world: RecordWorld, writer: number, state: Writer): RecordWorld => ({
  ...world,
  writers: world.writers.with(writer, state),
});

const without = (list: readonly number[], value: number): readonly number[] => list.toSpliced(list.indexOf(value), 1);
