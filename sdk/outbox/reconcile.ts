import { randomUUID } from 'node:crypto';
import type { Lead, LeadList } from '../api-types.ts';
import type { LeadIntakeClient } from '../client.ts';
import { PAGES_MISSED } from '../outcomes.ts';
import { type Connection, requireNoTransaction } from './connection.ts';
import { type Memo, openMemo } from './memo.ts';
import { OutboxError } from './outbox-error.ts';
import { type PacedReads, pacedReads, Stopped } from './paced-reads.ts';
import {
  type Difference,
  doneIn,
  type Reconciliation,
  type StoredRun,
  toDifference,
  toReconciliation,
} from './reconciliation.ts';
import { type SentRow, type SentRows, sentRowsIn } from './sent-rows.ts';

/** Options of a comparison. */
export interface ReconcileOptions {
  /** Ends it, and cancels the request in flight. */
  readonly signal?: AbortSignal;
  /** No request begins and no wait for the quota ends after this time; milliseconds. Default: no limit. */
  readonly maxMs?: number;
  /** Begins anew instead of where the last call stopped. */
  readonly restart?: boolean;
  /** Called and awaited at least once for each difference; after a crash or an error, again for some. */
  readonly onDifference?: (difference: Difference) => void | Promise<void>;
}

/** The lead of a row; undefined: it is not there. */
type Found = Lead | 'not_read' | undefined;

const MEMO = 'reconciliation';

const PAGE_SIZE = 100;

/** The maximum number of differences in a report. */
const MAX_DIFFERENCES = 100;

/** An older comparison is not continued: its numbers would mix different days. */
const MAX_AGE_MS = 24 * 60 * 60 * 1000;

/** Compares the sent leads with the service. */
export async function reconcile(
  connection: Connection,
  table: string,
  client: LeadIntakeClient,
  { signal, maxMs = Number.POSITIVE_INFINITY, restart = false, onDifference }: ReconcileOptions = {},
): Promise<Reconciliation> {
  await requireNoTransaction(connection);
  const memo = await openMemo(connection, table, MEMO);
  const token = randomUUID();
  // A later comparison takes over, and ends the earlier one.
  await memo.take(token);
  const rows = sentRowsIn(connection, table);
  const earlier = restart ? undefined : unfinishedIn((await memo.read()).value);
  const comparison = new Comparison(client, rows, memo, token, earlier ?? (await beginning(rows)), {
    signal,
    maxMs,
    onDifference,
  });
  return toReconciliation(await comparison.run());
}

/** Returns the latest comparison, finished or not; null: there was none. */
export async function lastReconciliation(connection: Connection, table: string): Promise<Reconciliation | null> {
  const run = storedIn((await (await openMemo(connection, table, MEMO)).read()).value);
  return run === undefined ? null : toReconciliation(run);
}

const storedIn = (value: string): StoredRun | undefined => (value === '' ? undefined : JSON.parse(value));

function unfinishedIn(value: string): StoredRun | undefined {
  const run = storedIn(value);
  return run === undefined || run.isComplete || Math.abs(Date.now() - run.startedAt) > MAX_AGE_MS ? undefined : run;
}

async function beginning(rows: SentRows): Promise<StoredRun> {
  return {
    startedAt: Date.now(),
    isComplete: false,
    stoppedBecause: null,
    ...(await rows.overview()),
    after: null,
    cursor: null,
    isPaging: true,
    idlePages: 0,
    requests: 0,
    seen: null,
    sent: 0,
    there: 0,
    alreadyOpen: 0,
    openLeadThere: 0,
    otherData: 0,
    notRead: 0,
    waiting: 0,
    refused: 0,
    confirmed: 0,
    differences: [],
  };
}

/**
 * Merges pages of leads with the rows, both by descending id, with a few hundred of each in memory. When it has read as many
 * pages without a lead of the outbox as rows are left, it reads the remaining leads one by one. So it makes at most twice the
 * requests of the cheaper way, however many other leads the studio has.
 */
class Comparison {
  readonly #client: LeadIntakeClient;
  readonly #rows: SentRows;
  readonly #memo: Memo;
  readonly #token: string;
  readonly #signal: AbortSignal | undefined;
  readonly #onDifference: ReconcileOptions['onDifference'];
  readonly #reads: PacedReads;
  #run: StoredRun;
  #batch: SentRow[] = [];
  #saved = 0;

  constructor(
    client: LeadIntakeClient,
    rows: SentRows,
    memo: Memo,
    token: string,
    run: StoredRun,
    options: { readonly [Name in keyof Omit<ReconcileOptions, 'restart'>]-?: ReconcileOptions[Name] | undefined },
  ) {
    this.#client = client;
    this.#rows = rows;
    this.#memo = memo;
    this.#token = token;
    this.#run = run;
    this.#signal = options.signal;
    this.#onDifference = options.onDifference;
    this.#reads = pacedReads({
      signal: options.signal,
      maxMs: options.maxMs ?? Number.POSITIVE_INFINITY,
      client,
      beforeWait: () => this.#save(),
    });
  }

  async run(): Promise<StoredRun> {
    try {
      const { seen } = this.#run;
      // With the key of another studio, the numbers would mix both studios.
      if (seen !== null && (await this.#lead(seen)) === undefined) this.#run = await beginning(this.#rows);
      while (this.#run.isPaging && !(await this.#comparePage())) await this.#save();
      if (!this.#run.isPaging) await this.#compareOneByOne();
      this.#run.isComplete = true;
      this.#run.stoppedBecause = null;
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
      this.#run.stoppedBecause = error.message;
    }
    await this.#save();
    return this.#run;
  }

  /** Compares the rows of one page; returns whether it was the last one. */
  async #comparePage(): Promise<boolean> {
    const run = this.#run;
    const before = doneIn(run);
    const page = await this.#page();
    run.seen ??= page.leads[0]?.id ?? null;
    // A studio without leads needs no confirmation that these are missing.
    if (run.seen === null) run.confirmed = PAGES_MISSED;
    const leads = new Map(page.leads.map((lead) => [lead.id.toLowerCase(), lead]));
    const lowest = page.nextCursor === null ? '' : (page.leads.at(-1)?.id.toLowerCase() ?? '');
    for (let row = await this.#next(); row !== undefined && row.leadId >= lowest; row = await this.#next()) {
      const lead = leads.get(row.leadId);
      await this.#settle(row, lead ?? (run.confirmed < PAGES_MISSED ? await this.#missedLead(row.leadId) : undefined));
    }
    if (doneIn(run) === before) run.idlePages += 1;
    run.cursor = page.nextCursor;
    if (run.cursor === null) return true;
    run.isPaging = run.idlePages < run.rows - doneIn(run);
    return false;
  }

  async #compareOneByOne(): Promise<void> {
    for (let row = await this.#next(); row !== undefined; row = await this.#next()) {
      await this.#settle(row, await this.#lead(row.leadId));
      await this.#save();
    }
  }

  async #page(): Promise<LeadList> {
    const { cursor } = this.#run;
    const options = { limit: PAGE_SIZE, ...(cursor !== null && { cursor }), ...this.#cancelling };
    const page = await this.#reads.read(() => this.#client.listLeads(options));
    if (page !== undefined) return page;
    throw new Stopped('the service has refused the position: begin anew');
  }

  /** Reads a lead; `not_read` when the service cannot, which does not end the comparison. */
  #lead(id: string): Promise<Found> {
    return this.#reads.read(() => this.#client.getLead(id, this.#cancelling), 'not_read' as const);
  }

  /** Reads a lead that no page has, and counts how many such leads in a row were missing. */
  async #missedLead(id: string): Promise<Found> {
    const lead = await this.#lead(id);
    if (lead !== 'not_read') this.#run.confirmed = lead === undefined ? this.#run.confirmed + 1 : 0;
    return lead;
  }

  get #cancelling() {
    return this.#signal === undefined ? {} : { signal: this.#signal };
  }

  /** Counts a row. */
  async #settle(row: SentRow, found: Found): Promise<void> {
    const run = this.#run;
    const isThere = found === undefined || found === 'not_read' ? 0 : 1;
    const isOther = found instanceof Object && row.hasData && (await this.#rows.haveOther(row, found));
    if (isThere === 0) await this.#report(row, found === 'not_read' ? found : 'not_there');
    if (isOther) await this.#report(row, 'other_data');
    if (found === 'not_read') run.notRead += 1;
    if (row.state === 'delivered') {
      run.sent += 1;
      run.there += isThere;
    } else {
      run.alreadyOpen += 1;
      run.openLeadThere += isThere;
    }
    if (isOther) run.otherData += 1;
    run.after = [row.leadId, row.key];
    this.#batch.shift();
  }

  async #report({ hasData: _, ...row }: SentRow, kind: Difference['kind']): Promise<void> {
    await this.#onDifference?.(toDifference({ ...row, kind }));
    if (this.#run.differences.length < MAX_DIFFERENCES) this.#run.differences.push({ ...row, kind });
  }

  /** Returns the next row to compare, by descending id. */
  async #next(): Promise<SentRow | undefined> {
    if (this.#batch.length === 0) this.#batch = await this.#rows.behind(this.#run.upTo, this.#run.after);
    return this.#batch[0];
  }

  async #save(): Promise<void> {
    const made = this.#reads.made();
    this.#run.requests += made - this.#saved;
    this.#saved = made;
    Object.assign(this.#run, await this.#rows.unsent());
    if (!(await this.#memo.write(JSON.stringify(this.#run), this.#token, this.#token)))
      throw new OutboxError('Another comparison of this outbox has begun, and replaces this one.');
  }
}
