/** A caller's request, repeated as often as needed. */
export interface Request {
  readonly key: string;
  /** Represents the whole body. */
  readonly data: string;
  /** The contact as typed. Two that differ in letter case only are two spellings of one contact, in every region. */
  readonly contact: string;
}

/** The requests, and the other events that may happen. */
export interface Scenario {
  /** One caller each. */
  readonly requests: readonly Request[];
  /** The number of concurrent movers, which close and open leads and correct their contacts. */
  readonly movers: number;
  /** The contacts that leads may be corrected to. */
  readonly corrections?: readonly string[];
  /** Whether a failover may undo writes that no majority has stored; otherwise every write is durable immediately. */
  readonly failovers?: boolean;
  /**
   * The maximum number of pending inserts that may still be carried out after their calls have stopped waiting for
   * them.
   */
  readonly lateInserts?: number;
  /**
   * How often the studio's region changes, each time to a new one. 0: never, but movers
   * still read the region first, and write later.
   */
  readonly newRegions?: number;
}

/** A lead in the database, with its claims. */
export interface Row extends Request {
  readonly id: number;
  /** The call that wrote it. */
  readonly by: number;
  readonly open: boolean;
  /** Those that it was opened with; none once it is closed. */
  readonly claims: readonly string[];
  /** Whether a majority of the servers has stored it. */
  readonly durable: boolean;
  /** Its former contacts; absent until its contact is corrected. */
  readonly formerContacts?: readonly string[];
}

/** The relevant fields of a row that was read. */
export type Found = Pick<Row, 'id' | 'key' | 'data'>;

/** A process's work on a request: one attempt of its caller. */
export interface Call {
  /** The next step of the work. */
  readonly at: 'insert' | 'written' | 'look';
  readonly number: number;
  /** The id of the lead that it creates. */
  readonly id: number;
  /** The claims of that lead, by the region of its studio when the call began. */
  readonly claims: readonly string[];
  /** The leads found under its key and with its contact; null if there is none, absent until it has looked. */
  readonly byKey?: Found | null;
  readonly byContact?: Found | null;
  /** Whether its first lookup found no lead under its key. */
  readonly hasLookedUpKey?: boolean;
}

/** The answer that a caller received. */
export interface Answer {
  readonly at: 'answered';
  readonly what: 'created' | 'replayed' | 'conflict' | 'already open';
  /** The lead that was named. */
  readonly lead?: number;
  /** The call that answered. */
  readonly by: number;
  /** Whether there was no lead under the caller's key at the time of the answer. */
  readonly keyWasFree: boolean;
}

/** The state of a caller. An `unsure` caller got no answer, and repeats its request. */
export type Caller = { readonly at: 'silent' | 'unsure' } | Call | Answer;

/**
 * A process of the CRM that closes, opens and corrects leads. A mover that may not open a lead looks for the
 * conflicting one.
 */
export interface Mover {
  readonly at: 'idle' | 'open' | 'look' | 'in conflict with itself' | 'correct' | 'claim';
  readonly lead?: number;
  /** The contact of the lead when it was read to be opened, or the new contact of a correction. */
  readonly contact?: string;
  /** The claims of the lead that is opened or corrected, by the region of the studio when the mover began. */
  readonly claims?: readonly string[];
}

/** The state of the system. Callers are in the order of the scenario's requests. */
export interface World {
  readonly callers: readonly Caller[];
  readonly movers: readonly Mover[];
  /** The region of the studio, for phone numbers. */
  readonly region: number;
  readonly rows: readonly Row[];
  /** Inserts that may still be carried out although no call waits for them. */
  readonly late: readonly Row[];
}

/** A label of what happens, and the world after it. */
export type Step = readonly [label: string, next: World];

/** Returns the world with a caller in another state. */
export function withCaller(world: World, caller: number, state: Caller): World {
  return { ...world, callers: world.callers.with(caller, state) };
}

/** Returns the world with one row more. The order of rows has no meaning, so it is canonical: by id. */
export function withNewRow(world: World, row: Row): World {
  return { ...world, rows: [...world.rows, row].sort((a, b) => a.id - b.id) };
}

/** Returns the world with a row changed; null: removed. */
export function withRow(world: World, row: Row, changes: Partial<Row> | null): World {
  const rows = world.rows.flatMap((each) => (each !== row ? each : changes ? { ...row, ...changes } : []));
  return { ...world, rows };
}

/**
 * Returns a number that is not in use. Callers draw from separate numbers, so that the order of requests does not
 * multiply states.
 */
export function freeNumber({ callers, movers, rows, late }: World, caller: number): number {
  const used = new Set<number | undefined>();
  for (const { id, by } of [...rows, ...late]) used.add(id).add(by);
  for (const { lead } of movers) used.add(lead);
  for (const each of callers) {
    if (each.at === 'answered') used.add(each.by).add(each.lead);
    else if ('number' in each) used.add(each.number).add(each.id).add(each.byKey?.id).add(each.byContact?.id);
  }
  let number = caller;
  while (used.has(number)) number += callers.length;
  return number;
}
