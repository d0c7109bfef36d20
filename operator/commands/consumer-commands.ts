import { type Command, Option } from 'commander';
import { CONSUMER_STARTS, type Consumer, type ConsumerStart } from '../../src/domain/consumer.ts';
import { eachPage } from '../../src/domain/cursor.ts';
import {
  createConsumer,
  getConsumer,
  type ListedConsumer,
  listConsumers,
  removeConsumer,
} from '../../src/usecases/consumers.ts';
import { listSetAside, setAsideLeadChanges, takeBackLeadChanges } from '../../src/usecases/set-aside.ts';
import { getStudio } from '../../src/usecases/studios.ts';
import { BY_HAND } from '../command.ts';
import { program, runOnStore } from './program.ts';

interface CreateOptions {
  readonly allStudios?: boolean;
  readonly includeTestStudios?: boolean;
  readonly start: ConsumerStart;
}

/** Adds the commands for named consumers of the change feed. */
export function addConsumerCommands(): void {
  const consumers = program.command('consumers').description('manage the named consumers of the change feed');
  consumers
    .command('create <consumer> [studios...]')
    .description('create a consumer of the changes of some studios, or of all; repeating it changes nothing')
    .option('--all-studios', 'send it the changes of all studios')
    .option('--include-test-studios', 'with --all-studios: also the changes of test studios')
    .addOption(
      new Option('--start <start>', 'what it gets: changes from now on, or all leads first')
        .choices(CONSUMER_STARTS)
        .makeOptionMandatory(),
    )
    .action((name: string, studioIds: string[], options: CreateOptions) =>
      runOnStore(async (deps) => {
        const { allStudios = false, includeTestStudios = false, start } = options;
        // A consumer's studios never change. A misspelt id would silently get nothing.
        for (const studioId of studioIds) await getStudio(deps, studioId);
        return toRow(
          await createConsumer(deps, { name, studioIds, allStudios, includeTestStudios, start, ...BY_HAND }),
        );
      }),
    );
  consumers
    .command('list')
    .description('list all consumers, and how many leads wait for each')
    .action(() => runOnStore(async (deps) => (await listConsumers(deps)).map(toListedRow)));
  consumers
    .command('remove <consumer>')
    .description('remove a consumer, and the changes that wait for it')
    .action((name: string) =>
      runOnStore(async (deps) => ({ removed: await removeConsumer(deps, { name, ...BY_HAND }) })),
    );
  addSetAsideCommands(consumers);
}

/** Adds the commands for changes that a consumer cannot process. */
function addSetAsideCommands(consumers: Command): void {
  consumers
    .command('set-aside <consumer> <studio> <leads...>')
    .description('set leads aside that a consumer cannot process, until they are taken back or change')
    .requiredOption('--reason <code>', 'why: A to Z, 0 to 9 and _')
    .action((name: string, studioId: string, leadIds: string[], { reason }: { readonly reason: string }) =>
      runOnStore(async (deps) => {
        // Matches the current state of each lead, whatever its revision.
        const revision = Number.MAX_SAFE_INTEGER;
        const leads = leadIds.map((leadId) => ({ studioId, leadId, revision, reason, retryAt: null }));
        const { applied, unknown } = await setAsideLeadChanges(deps, await getConsumer(deps, name), leads, {
          memberId: null,
          ...BY_HAND,
        });
        return { setAside: applied, unknown };
      }),
    );
  consumers
    .command('list-set-aside <consumer>')
    .description('list the leads that a consumer has set aside')
    .action((name: string) =>
      runOnStore(async (deps) => {
        const consumer = await getConsumer(deps, name);
        const page = (pageToken: string) => listSetAside(deps, consumer, { pageSize: 0, pageToken });
        const listed: object[] = [];
        for await (const { leads } of eachPage(page)) listed.push(...leads.map(({ due: _, ...lead }) => lead));
        return listed;
      }),
    );
  consumers
    .command('take-back <consumer> [studio] [leads...]')
    .description('resend leads that a consumer has set aside: some leads of a studio, or all')
    .action((name: string, studioId: string | undefined, leadIds: string[]) =>
      runOnStore(async (deps) => {
        const consumer = await getConsumer(deps, name);
        const which = { studioId: studioId ?? '', leadIds, all: studioId === undefined };
        let takenBack = 0;
        const page = (pageToken: string) => takeBackLeadChanges(deps, consumer, { ...which, pageToken, ...BY_HAND });
        for await (const { takenBackCount } of eachPage(page)) takenBack += takenBackCount;
        return { takenBack };
      }),
    );
}

/** Describes all studios with text that is not a studio id. */
const describeAllStudios = ({ includesTests, fault }: Consumer) =>
  fault ? '(cannot be read)' : `(all${includesTests ? ', and test studios' : ''})`;

const toRow = (consumer: Consumer) => ({
  name: consumer.name,
  studios: consumer.studioIds ?? describeAllStudios(consumer),
  createdAt: consumer.createdAt,
  backfilling: consumer.backfills.length > 0,
});

const toListedRow = ({ consumer, waiting, setAside }: ListedConsumer) => ({
  ...toRow(consumer),
  waiting: waiting.leads,
  since: waiting.since,
  setAside: setAside.leads,
});
