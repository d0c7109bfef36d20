import { setTimeout as sleep } from 'node:timers/promises';
import { crmIdFault } from '../../common/rules/field-rules.ts';
import type { Requester } from '../domain/audit.ts';
import {
  type Backfill,
  type Consumer,
  type ConsumerStart,
  consumerNameFault,
  DEFAULT_CONSUMER,
  MAX_STUDIOS_OF_CONSUMER,
  receivesStudio,
  withBackfill,
} from '../domain/consumer.ts';
import type { LeadChange } from '../domain/lead-change.ts';
import { timeOfId } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { ConsumerChanges, MeasuredDeliveries } from '../store/port/deliveries.ts';
import { StoreUnavailable } from '../store/port/faults.ts';
import type { Changing, Reading } from './dependencies.ts';
import { requestedBy } from './requests.ts';

/** The maximum count of leads that wait for a consumer. It suffices to see whether they accumulate. */
export const MAX_COUNTED = 100_000;

/** How long a poll continues a backfill; milliseconds. */
const MAX_BACKFILL_MS = 250;

export interface CreateConsumerCommand extends Requester {
  readonly name: string;
  readonly studioIds: readonly string[];
  readonly allStudios: boolean;
  readonly includeTestStudios: boolean;
  readonly start: ConsumerStart | undefined;
}

/**
 * Creates a consumer of the change feed. A repetition with the same settings returns the existing one.
 *
 * @param ending aborts the distribution of earlier changes; a repetition continues it
 * @throws Refusal INVALID_REQUEST, CONSUMER_EXISTS, CONSUMER_LIMIT_REACHED
 */
export async function createConsumer(
  { store, clock }: Changing,
  { name, studioIds, allStudios, includeTestStudios: includesTests, start, ...requester }: CreateConsumerCommand,
  ending?: AbortSignal,
): Promise<Consumer> {
  const faults = new Faults();
  faults.note('consumer.name', consumerNameFault(name));
  faults.noteEach('consumer.studioIds', studioIds, MAX_STUDIOS_OF_CONSUMER, (id) => ({ '': crmIdFault(id) }));
  if (allStudios === studioIds.length > 0) faults.note('consumer.studioIds', 'must be given, or else allStudios');
  if (includesTests && !allStudios) faults.note('consumer.includeTestStudios', 'must be absent without allStudios');
  if (start === undefined) faults.note('start', 'must be given');
  faults.refuseIfAny();
  // Distributes earlier changes first, because the new consumer would receive them otherwise.
  const isNew = !(await store.listConsumers()).some((each) => each.name === name);
  while (start === 'now' && isNew && !(await store.distributeLeadChanges())) {
    if (ending?.aborted) throw new StoreUnavailable('earlier changes were not yet distributed');
  }
  const by = requestedBy(requester, clock);
  const ids = allStudios ? null : [...new Set(studioIds)].toSorted();
  const settings = { name, studioIds: ids, includesTests, start: start as ConsumerStart, createdAt: by.now };
  const outcome = await store.createConsumer(settings, by);
  switch (outcome.kind) {
    case 'created':
      return outcome.consumer;
    case 'exists':
      throw new Refusal('CONSUMER_EXISTS');
    case 'limit-reached':
      throw new Refusal('CONSUMER_LIMIT_REACHED');
  }
}

async function findConsumer({ store }: Reading, name: string): Promise<Consumer | undefined> {
  const faults = new Faults();
  faults.note('consumer', consumerNameFault(name));
  faults.refuseIfAny();
  return (await store.listConsumers()).find((each) => each.name === name);
}

/** @throws Refusal INVALID_REQUEST, CONSUMER_NOT_FOUND; UnreadableRecord */
export async function getConsumer(deps: Reading, name: string): Promise<Consumer> {
  const found = (await findConsumer(deps, name)) ?? (name === DEFAULT_CONSUMER.name ? DEFAULT_CONSUMER : undefined);
  if (!found) throw new Refusal('CONSUMER_NOT_FOUND');
  if (found.fault) throw found.fault;
  return found;
}

/**
 * Removes a consumer and its waiting changes. Returns whether it existed. A new consumer of the same name stays.
 *
 * @param check throws unless it may be removed
 * @param ending when it aborts, pollers remove the remaining changes
 * @throws Refusal INVALID_REQUEST
 */
export async function removeConsumer(
  { store, clock }: Changing,
  { name, ...by }: Requester & { readonly name: string },
  check: (consumer: Consumer) => void = () => {},
  ending?: AbortSignal,
): Promise<boolean> {
  const found = await findConsumer({ store }, name);
  if (!found) return false;
  check(found);
  await store.removeConsumer(found.number, requestedBy(by, clock));
  while ((await store.removeOrphans()) && !ending?.aborted);
  return true;
}

export interface ListedConsumer extends MeasuredDeliveries {
  readonly consumer: Consumer;
}

/** Returns the stored consumers, oldest first. @param includes default: all */
export async function listConsumers(
  { store }: Reading,
  includes: (consumer: Consumer) => boolean = () => true,
): Promise<ListedConsumer[]> {
  const listed: ListedConsumer[] = [];
  // One after the other, because counting is the most expensive query.
  for (const consumer of (await store.listConsumers()).filter(includes)) {
    listed.push({ consumer, ...(await measureConsumer({ store }, consumer)) });
  }
  return listed;
}

/** Counts the leads that wait for a consumer. While only a backfill is pending, they wait since its request. */
export async function measureConsumer(
  { store }: Reading,
  { number, backfills: [first] }: Consumer,
): Promise<MeasuredDeliveries> {
  const measured = await store.measureDeliveries(number, MAX_COUNTED);
  if (!first) return measured;
  const { leads, since } = measured.waiting;
  return { ...measured, waiting: { leads, since: since ?? timeOfId(first.id) }, isComplete: false };
}

/** Starts a backfill of a consumer. @param studioId one of its studios; null: all */
export async function startBackfill(
  store: Changing['store'],
  consumer: Consumer,
  studioId: string | null,
): Promise<void> {
  let current: Consumer | undefined = consumer;
  while (current && !(await store.putBackfills(current, withBackfill(current, studioId)))) {
    current = (await store.listConsumers()).find(({ number }) => number === consumer.number);
  }
}

/**
 * Returns the changes that wait for a consumer; null: the consumer was removed. If there are few, continues the backfill.
 * While there are none, distributes pending changes, for at most half of the time.
 */
export async function listDeliveries(
  deps: Changing,
  number: Consumer['number'],
  limit: number,
): Promise<readonly LeadChange[] | null> {
  for (;;) {
    const began = performance.now();
    const found = await deliveriesAfterBackfill(deps, number, limit);
    if (!found) return null;
    if (found.changes.length > 0 || found.isComplete) return found.changes;
    await sleep(performance.now() - began);
  }
}

async function deliveriesAfterBackfill(
  { store, clock }: Changing,
  number: Consumer['number'],
  limit: number,
): Promise<ConsumerChanges | null> {
  await store.returnDeferredDeliveries(number, clock());
  const found = await store.listDeliveries(number, limit);
  if (!found) return null;
  if (found.consumer.fault) throw found.consumer.fault;
  if (found.changes.length >= limit || found.consumer.backfills.length === 0) return found;
  const until = performance.now() + MAX_BACKFILL_MS;
  let { consumer } = found;
  let sent = found.changes.length;
  do {
    const [first, ...others] = consumer.backfills;
    if (!first) break;
    const { studioId, after } = first;
    const options = { consumer: consumer.number };
    const { leads, next } = await store.resendLeads({ studioId, after, limit }, clock(), options);
    const rest = next === null ? await nextStudioBackfill({ store }, consumer, first) : [{ ...first, after: next }];
    const backfills = [...rest, ...others];
    // Another poll has advanced the backfill.
    if (!(await store.putBackfills(consumer, backfills))) break;
    consumer = { ...consumer, backfills };
    sent += leads;
  } while (sent < limit && performance.now() < until);
  return store.listDeliveries(number, limit);
}

/** Returns the backfill of the next studio, if there is one. */
async function nextStudioBackfill({ store }: Reading, consumer: Consumer, backfill: Backfill): Promise<Backfill[]> {
  let studioId = backfill.andLater ? await store.findStudioAfter(backfill.studioId) : null;
  while (studioId !== null && !(await hasStudio({ store }, consumer, studioId)))
    studioId = await store.findStudioAfter(studioId);
  return studioId === null ? [] : [{ ...backfill, studioId, after: null }];
}

export const hasStudio = async ({ store }: Reading, consumer: Consumer, id: string): Promise<boolean> =>
  receivesStudio(consumer, (await store.findStudio(id)) ?? { id, isTest: false });
