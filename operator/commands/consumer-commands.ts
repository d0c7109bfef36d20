import { Option } from 'commander';
import { CONSUMER_STARTS, type Consumer, type ConsumerStart } from '../../src/domain/consumer.ts';
import { createConsumer, type ListedConsumer, listConsumers, removeConsumer } from '../../src/usecases/consumers.ts';
import { program, runOnStore } from './program.ts';

interface CreateOptions {
  readonly allStudios?: boolean;
  readonly includeTestStudios?: boolean;
  readonly start: ConsumerStart;
}

/** Adds the commands for the named consumers of the change feed. */
export function addConsumerCommands(): void {
  const consumers = program.command('consumers').description('manage the named consumers of the change feed');
  consumers
    .command('create <consumer> [studios...]')
    .description('create a consumer of the changes of some studios, or of all; repeating it changes nothing')
    .option('--all-studios', 'send it the changes of all studios')
    .option('--include-test-studios', 'with --all-studios: those of test studios, too')
    .addOption(
      new Option('--start <start>', 'what it is sent: changes from now on, or all leads as well')
        .choices(CONSUMER_STARTS)
        .makeOptionMandatory(),
    )
    .action((name: string, studioIds: string[], options: CreateOptions) =>
      runOnStore(async (deps) => {
        const { allStudios = false, includeTestStudios = false, start } = options;
        return shown(await createConsumer(deps, { name, studioIds, allStudios, includeTestStudios, start }));
      }),
    );
  consumers
    .command('list')
    .description('list all consumers, and how many leads wait for each')
    .action(() => runOnStore(async (deps) => (await listConsumers(deps)).map(shownWithWaiting)));
  consumers
    .command('remove <consumer>')
    .description('remove a consumer, and what waits for it')
    .action((name: string) => runOnStore(async (deps) => ({ removed: await removeConsumer(deps, name) })));
}

const shown = ({ name, studioIds, includesTests, createdAt, backfills }: Consumer) => ({
  name,
  studios: studioIds ?? (includesTests ? 'all, and test studios' : 'all'),
  createdAt,
  backfilling: backfills.length > 0,
});

const shownWithWaiting = ({ consumer, waiting }: ListedConsumer) => ({
  ...shown(consumer),
  waiting: waiting.leads,
  since: waiting.since,
});
