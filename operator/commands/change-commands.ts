import { printable } from '../../common/printable.ts';
import { type Consumer, DEFAULT_CONSUMER } from '../../src/domain/consumer.ts';
import { eachPage } from '../../src/domain/cursor.ts';
import { MAX_AHEAD_BEFORE_RESTORE_MS } from '../../src/domain/database-epoch.ts';
import type { LeadChange } from '../../src/domain/lead-change.ts';
import type { TimeRange } from '../../src/domain/lead-filter.ts';
import { LeadChangePollers, resendLeads, watchLeadChanges } from '../../src/usecases/change-feed.ts';
import { getConsumer, hasStudio } from '../../src/usecases/consumers.ts';
import type { Dependencies } from '../../src/usecases/dependencies.ts';
import { getStudio, studioIds } from '../../src/usecases/studios.ts';
import { BY_HAND } from '../command.ts';
import { print } from '../standard-output.ts';
import { dateOrTime } from './options.ts';
import { abortOnSignal, isJson, program, progressPrinter, runOnStore } from './program.ts';

/** The maximum number of pending leads to count. */
const MAX_COUNTED = 1_000_000;

export function addChangeCommands(): void {
  const changes = program
    .command('changes')
    .description('inspect the change feed: the leads with changes that consumers have not acknowledged');
  changes
    .command('watch')
    .description('print pending and new changes until Ctrl-C, without acknowledging them')
    .addHelpText('after', '\nShows only the first 200 unacknowledged leads.')
    .action(() => runOnStore(watchChanges));
  changes
    .command('resend')
    .description('put leads into the feed again as if each had changed, for a consumer that has lost its copy')
    .argument('[studio]', 'studio of the leads (default: all)')
    .argument('[leads...]', 'some leads of the studio (default: all)')
    .option('--consumer <name>', 'resend them to this consumer only (default: all consumers)')
    .option('--changed-since <time>', 'only leads that last changed at this time or later', dateOrTime)
    .option('--changed-before <time>', 'only leads that last changed before', dateOrTime)
    .action((studioId: string | undefined, leadIds: readonly string[], options: ResendOptions) =>
      runOnStore(async (deps) => {
        const { consumer: name, changedSince: start = null, changedBefore: end = null } = options;
        const updated = start || end ? { start, end } : undefined;
        const consumer = name === undefined ? undefined : await getConsumer(deps, name);
        if (consumer && !updated) return resendTo(deps, consumer, studioId, leadIds);
        return resendChanges(deps, { studioId, leadIds, updated, consumer });
      }),
    );
  program
    .command('restored')
    .description(
      'record that the database was restored from a backup: all leads are sent again, and consumers look for lost ones',
    )
    .option(
      '--to <time>',
      'when the backup was begun (default: the time in a SQLite backup; without a time, any lead may be lost)',
      dateOrTime,
    )
    .action(({ to }: { to?: Date }) => {
      if (to && to > new Date()) return program.error('error: --to is in the future: give a time that has passed');
      return runOnStore((deps) => noteRestore(deps, to));
    });
}

/** Resends all leads at revisions higher than any before, then raises the epoch. May be repeated. */
async function noteRestore(deps: Dependencies, to: Date | undefined) {
  const { store, clock } = deps;
  const { resent } = await resendChanges(deps, {
    lowestRevision: clock().getTime() + MAX_AHEAD_BEFORE_RESTORE_MS,
  });
  const { epoch, restoredTo } = await store.raiseEpoch(to ?? null, clock(), { memberId: null, ...BY_HAND });
  return { epoch, restoredTo, resent };
}

/** Prints one line per change as changes arrive, until Ctrl-C. */
async function watchChanges(deps: Dependencies): Promise<void> {
  const ending = abortOnSignal();
  const { leads, since } = (await deps.store.measureDeliveries(DEFAULT_CONSUMER.number, MAX_COUNTED)).waiting;
  const waiting =
    since && `${leads} ${leads === 1 ? 'lead waits' : 'leads wait'}, the first since ${since.toISOString()}`;
  console.error(waiting ?? 'no lead waits');
  for await (const { changes } of watchLeadChanges(new LeadChangePollers(deps).of(DEFAULT_CONSUMER), ending)) {
    for (const change of changes) await print(`${printable(isJson() ? JSON.stringify(change) : toLine(change))}\n`);
  }
}

function toLine({ lead, revision, since, kinds }: LeadChange): string {
  const changes = kinds.map(({ kind }) => kind).join(', ');
  return `${since.toISOString()}  ${lead.studioId}  ${lead.id}  revision ${revision}  ${lead.stage}  ${changes}`;
}

interface ResendOptions {
  readonly consumer?: string;
  readonly changedSince?: Date;
  readonly changedBefore?: Date;
}

interface Resent {
  /** Undefined means all studios. */
  readonly studioId?: string | undefined;
  readonly leadIds?: readonly string[];
  readonly updated?: TimeRange | undefined;
  readonly lowestRevision?: number;
  /** The consumer that gets them; undefined means all. */
  readonly consumer?: Consumer | undefined;
}

/** Puts leads of a studio, or of all studios, back into the feed. May be repeated after an interruption. */
async function resendChanges(deps: Dependencies, { studioId: only, consumer, ...which }: Resent) {
  if (only !== undefined) await getStudio(deps, only);
  const showProgress = progressPrinter();
  let resent = 0;
  for await (const studioId of studioIds(deps, only)) {
    if (consumer && only === undefined && !(await hasStudio(deps, consumer, studioId))) continue;
    for await (const { leadCount, nextPageToken } of eachPage((pageToken) =>
      resendLeads(deps, { ...which, studioId, pageToken, ...BY_HAND }, consumer),
    )) {
      resent += leadCount;
      if (nextPageToken !== '') showProgress(`${resent} leads so far`);
    }
  }
  return { resent };
}

/** Resends one consumer some leads, all leads of a studio, or all leads of its studios. */
async function resendTo(deps: Dependencies, consumer: Consumer, only: string | undefined, leadIds: readonly string[]) {
  if (only !== undefined) await getStudio(deps, only);
  const which = { studioId: only ?? '', allStudios: only === undefined, leadIds, pageToken: '', ...BY_HAND };
  await resendLeads(deps, which, consumer);
  return { consumer: consumer.name, studios: only ?? '(all)', ...(leadIds.length > 0 && { leads: leadIds.length }) };
}
