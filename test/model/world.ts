/** What a caller asks for, as often as it takes. */
export interface Request {
  readonly key: string;
  /** Stands for the whole body. */
  readonly data: string;
  /** As it is typed. Two that differ in letter case only are two spellings of one contact, in every region. */
  readonly contact: string;
}

/** Who asks for what, and what may happen besides. */
export interface Scenario {
  /** Of one caller each. */
  readonly requests: readonly Request[];
  /** How many at once close and open leads, and correct their contacts. */
  readonly movers: number;
  /** What contacts may be corrected to. */
  readonly corrections?: readonly string[];
  /** Whether a failover may take back what no majority has; otherwise every write is durable at once. */
  readonly failovers?: boolean;
  /** How many inserts at once may still be carried out after their calls have stopped waiting for them. */
  readonly lateInserts?: number;
  /**
   * How often the region of the studio changes, each time to one that it never had; and claims are made anew. 0: never, but who moves
   * a lead reads it first, and writes later.
   */
  readonly newRegions?: number;
  /** Whether a call may go on when the renewal of the claims, which waits for longer than any call takes, has ended. */
  readonly outlastsRenewal?: boolean;
}

/** A lead in the database, with its claims. */
export interface Row extends Request {
  readonly id: number;
  /** The call that wrote it. */
  readonly by: number;
  readonly open: boolean;
  /** What it claims for itself: every form of its contact that is held to; nothing once it is closed. */
  readonly claims: readonly string[];
  /** Whether a majority of the servers has it. */
  readonly durable: boolean;
  /** The contacts that it had before; absent until its contact is corrected. */
  readonly hadContacts?: readonly string[];
}

/** What matters of a row that was read. */
export type Found = Pick<Row, 'id' | 'key' | 'data'>;

/** A process's work on a request: one attempt of its caller. */
export interface Call {
  /** Where the work stands. */
  readonly at: 'reserve' | 'insert' | 'written' | 'look' | 'settle';
  readonly number: number;
  /** The id of the lead that it makes. */
  readonly id: number;
  /** What that is to claim, as its studio was when the call began. */
  readonly claims: readonly string[];
  /** What it has found under its key and with its contact; absent as long as it has not looked. */
  readonly byKey?: Found | null;
  readonly byContact?: Found | null;
  /** Whether its key had no lead when it was looked for first. */
  readonly hasLookedForKey?: boolean;
}

/** What a caller has been told. */
export interface Answer {
  readonly at: 'told';
  readonly what: 'created' | 'replayed' | 'conflict' | 'already open';
  /** The lead that was named. */
  readonly lead?: number;
  /** The call that said so. */
  readonly by: number;
  /** Whether there was no lead under the caller's key when it was said. */
  readonly keyWasFree: boolean;
}

/** Where a caller stands. One that is unsure got no answer, and asks again. */
export type Caller = { readonly at: 'silent' | 'unsure' } | Call | Answer;

/** One who closes, opens and corrects leads for the CRM. Who may not open one looks which other is in its way. */
export interface Mover {
  readonly at: 'idle' | 'open' | 'look' | 'in its own way' | 'correct' | 'claim';
  readonly lead?: number;
  /** What the lead had as its contact when it was read to be opened; or what that is corrected to. */
  readonly contact?: string;
  /** What the lead is to claim that it opens or corrects, as the studio was when it began. */
  readonly claims?: readonly string[];
}

/** The studio: where its phone numbers are from, and where they were from when open leads made claims that may still stand. */
export interface Studio {
  readonly region: number;
  readonly formerRegions: readonly number[];
}

/** Who makes claims anew: one lead after the other, each only as it was read. */
export interface Renewer {
  readonly at: 'idle' | 'renew';
  readonly lead?: number;
  readonly was?: readonly string[];
  readonly claims?: readonly string[];
}

/** A promise of a key to a call, as only a protocol of several writes makes it. */
export interface Reservation {
  readonly key: string;
  readonly data: string;
  readonly lead: number;
  readonly settled: boolean;
}

/** Everything there is at a moment. Callers stand in the order of the scenario's requests. */
export interface World {
  readonly callers: readonly Caller[];
  readonly movers: readonly Mover[];
  readonly studio: Studio;
  readonly renewer: Renewer;
  readonly rows: readonly Row[];
  /** Inserts that nobody waits for any more, and that may still be carried out. */
  readonly late: readonly Row[];
  readonly reservations: readonly Reservation[];
}

/** What happens, and the world after it. */
export type Step = readonly [label: string, next: World];

/** The world in which a caller has come further. */
export function withCaller(world: World, caller: number, state: Caller): World {
  return { ...world, callers: world.callers.with(caller, state) };
}

/** The world with one row more. The order of rows means nothing, and so is always the same. */
export function withNewRow(world: World, row: Row): World {
  return { ...world, rows: [...world.rows, row].sort((a, b) => a.id - b.id) };
}

/** The world in which a row is another; null: in which it is gone. */
export function withRow(world: World, row: Row, changes: Partial<Row> | null): World {
  const rows = world.rows.flatMap((each) => (each !== row ? each : changes ? { ...row, ...changes } : []));
  return { ...world, rows };
}

/** A number that nothing in the world goes by. Each caller has its own, so that the order of asking leaves no trace. */
export function freeNumber({ callers, movers, rows, late, reservations }: World, caller: number): number {
  const used = new Set<number | undefined>();
  for (const { id, by } of [...rows, ...late]) used.add(id).add(by);
  for (const { lead } of [...movers, ...reservations]) used.add(lead);
  for (const each of callers) {
    if (each.at === 'told') used.add(each.by).add(each.lead);
    else if ('number' in each) used.add(each.number).add(each.id).add(each.byKey?.id).add(each.byContact?.id);
  }
  let number = caller;
  while (used.has(number)) number += callers.length;
  return number;
}
