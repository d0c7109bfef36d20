import type { System } from './explorer.ts';

/** How changes reach a consumer. The tests break each rule to show why it is needed. */
export interface FeedRules {
  /** Is a lead marked in the write that changes it? Otherwise in a second write. */
  readonly marksInTheSameWrite: boolean;
  /** Does an acknowledgement count only while the lead still has the revision that it names? */
  readonly comparesRevisions: boolean;
  /** Does a request to resend all changes give each lead a new revision? */
  readonly resendingIsARevision: boolean;
  /** Are only changes reported that a majority of the servers has stored? */
  readonly readsMajority: boolean;
  /**
   * Is a change pending until it is acknowledged? Otherwise it is pending if its time is later than the last
   * acknowledged one.
   */
  readonly keepsPending: boolean;
  /** Does a consumer keep its copy when that has a higher revision? */
  readonly consumersKeepNewer: boolean;
  /** Does a consumer apply a change before it acknowledges it? */
  readonly consumersApplyFirst: boolean;
}

export const FEED_RULES: FeedRules = {
  marksInTheSameWrite: true,
  comparesRevisions: true,
  resendingIsARevision: true,
  readsMajority: true,
  keepsPending: true,
  consumersKeepNewer: true,
  consumersApplyFirst: true,
};

/** The lead as one server has it; 0 is the initial value, which the consumers know. */
interface Lead {
  /** The writer that wrote it. */
  readonly value: number;
  readonly revision: number;
  readonly isWaiting: boolean;
  /** The writer's clock at the beginning of the write. */
  readonly time: number;
}

/**
 * A process that changes the lead, based on the state that it has read. `gone`: it has died, at any point of its
 * work.
 */
interface Writer {
  readonly at: 'idle' | 'has read' | 'has to mark' | 'done' | 'gone';
  readonly revision?: number;
  readonly time?: number;
}

/** A process that applies changes to the copy. A consumer that dies starts over. */
interface Consumer {
  readonly at: 'idle' | 'has pulled' | 'has applied' | 'has acknowledged';
  readonly pulled?: Lead;
}

/**
 * One lead, its writers, and the copy that several consumers maintain. Leads are independent of each other, so what
 * holds for one holds for all.
 */
interface World {
  readonly primary: Lead;
  /** The state that a majority of the servers has stored, which no failover undoes. */
  readonly majority: Lead;
  readonly writers: readonly Writer[];
  readonly consumers: readonly Consumer[];
  readonly copy: { readonly value: number; readonly revision: number };
  /** Advances with every read of it. */
  readonly clock: number;
  /** The time up to which changes are acknowledged, where acknowledgements are by time. */
  readonly acknowledged: number;
  readonly canLoseCopy: boolean;
}

/** All possible steps of two writers and two consumers, and the states that must never be reached. */
export function changeFeed(changes: Partial<FeedRules> = {}): System<World> {
  const rules = { ...FEED_RULES, ...changes };
  const isWaiting = (world: World, lead: Lead) =>
    rules.keepsPending ? lead.isWaiting : lead.time > world.acknowledged;
  const initial: Lead = { value: 0, revision: 0, isWaiting: false, time: 0 };
  return {
    initial: {
      primary: initial,
      majority: initial,
      writers: [{ at: 'idle' }, { at: 'idle' }],
      consumers: [{ at: 'idle' }, { at: 'idle' }],
      copy: { value: 0, revision: 0 },
      clock: 0,
      acknowledged: 0,
      canLoseCopy: true,
    },
    *steps(world) {
      yield* serverSteps(rules, world);
      for (const [number, writer] of world.writers.entries()) yield* writerSteps(rules, world, number, writer);
      for (const [number, consumer] of world.consumers.entries()) {
        yield* consumerSteps(rules, world, number, consumer, isWaiting);
      }
    },
    fault: (world) =>
      isWaiting(world, world.majority) || world.copy.value === world.majority.value ? undefined : 'a change was missed',
    isSettled: (world) =>
      world.primary === world.majority &&
      !isWaiting(world, world.majority) &&
      world.writers.every(({ at }) => at === 'done' || at === 'gone'),
  };
}

type Step = readonly [label: string, next: World];

function* serverSteps(rules: FeedRules, world: World): Iterable<Step> {
  const { primary, majority, canLoseCopy } = world;
  if (JSON.stringify(primary) !== JSON.stringify(majority)) {
    yield ['a majority stores the write', { ...world, majority: primary }];
    yield ['a failover undoes the write', { ...world, primary: majority }];
  } else if (canLoseCopy) {
    const lead = { ...primary, isWaiting: true, revision: primary.revision + (rules.resendingIsARevision ? 1 : 0) };
    const copy = { value: -1, revision: -1 };
    yield [
      'the copy is lost, and a resend is requested',
      { ...world, primary: lead, majority: lead, copy, canLoseCopy: false },
    ];
  }
}

function* writerSteps(rules: FeedRules, world: World, number: number, writer: Writer): Iterable<Step> {
  const { primary, clock } = world;
  const become = (writer: Writer): World => ({ ...world, writers: world.writers.with(number, writer) });
  switch (writer.at) {
    case 'idle': {
      const time = rules.keepsPending ? 0 : clock + 1;
      const next = become({ at: 'has read', revision: primary.revision, time });
      yield [`writer ${number} reads the lead`, { ...next, clock: time }];
      return;
    }
    case 'has read': {
      if (primary.revision !== writer.revision) {
        yield [`writer ${number} finds that it has changed`, become({ at: 'idle' })];
        return;
      }
      const { marksInTheSameWrite } = rules;
      const lead = {
        value: number + 1,
        revision: primary.revision + 1,
        isWaiting: primary.isWaiting || marksInTheSameWrite,
        time: writer.time ?? 0,
      };
      const next = become({ at: marksInTheSameWrite ? 'done' : 'has to mark' });
      yield [`writer ${number} changes the lead`, { ...next, primary: lead }];
      break;
    }
    case 'has to mark':
      yield [
        `writer ${number} marks the lead`,
        { ...become({ at: 'done' }), primary: { ...primary, isWaiting: true } },
      ];
      break;
    case 'done':
    case 'gone':
      return;
  }
  yield [`writer ${number} dies`, become({ at: 'gone' })];
}

function* consumerSteps(
  rules: FeedRules,
  world: World,
  number: number,
  { at, pulled }: Consumer,
  isWaiting: (world: World, lead: Lead) => boolean,
): Iterable<Step> {
  const { primary, copy } = world;
  const become = (consumer: Consumer): World => ({ ...world, consumers: world.consumers.with(number, consumer) });
  if (!pulled) {
    const lead = rules.readsMajority ? world.majority : primary;
    if (isWaiting(world, lead)) yield [`consumer ${number} pulls`, become({ at: 'has pulled', pulled: lead })];
    return;
  }
  const applies = (next: Consumer): Step => {
    const isNewer = !rules.consumersKeepNewer || pulled.revision > copy.revision;
    const applied = isNewer ? { value: pulled.value, revision: pulled.revision } : copy;
    return [`consumer ${number} applies`, { ...become(next), copy: applied }];
  };
  const acknowledges = (next: Consumer): Step => {
    const counts = !rules.comparesRevisions || primary.revision === pulled.revision;
    const acknowledged = rules.keepsPending ? 0 : Math.max(world.acknowledged, pulled.time);
    const lead = counts && rules.keepsPending ? { ...primary, isWaiting: false } : primary;
    return [`consumer ${number} acknowledges`, { ...become(next), primary: lead, acknowledged }];
  };
  if (at === 'has pulled')
    yield rules.consumersApplyFirst
      ? applies({ at: 'has applied', pulled })
      : acknowledges({ at: 'has acknowledged', pulled });
  else yield at === 'has applied' ? acknowledges({ at: 'idle' }) : applies({ at: 'idle' });
  yield [`consumer ${number} dies`, become({ at: 'idle' })];
}
