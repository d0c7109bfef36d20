import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { LEAD_STAGES, type LeadStage } from '../domain/lead.ts';
import { type GivenLeadFilter, isAnyTime, isMatch, parseFilter } from '../domain/lead-filter.ts';
import { Faults } from '../domain/refusal.ts';
import { MAX_LEAD_SOURCES } from '../domain/studio.ts';
import type { Reading } from './dependencies.ts';
import { eachStoredPage } from './requests.ts';
import { everyStudio, existingStudio } from './studios.ts';

/** The maximum number of leads that a count examines, and the number that it reads at a time. */
const MAX_EXAMINED = 100_000;
const MAX_PER_READ = 5000;

/** The maximum count of a stage that has leads beyond the examined ones. */
const MAX_OF_STAGE = 10_000;

export interface CountLeadsQuery {
  readonly studioId: string;
  readonly filter?: GivenLeadFilter | undefined;
}

export interface LeadCount<Of> {
  readonly of: Of;
  readonly count: number;
  /** Whether the true number may be higher. */
  readonly isLowerBound: boolean;
}

export interface LeadCounts {
  /** Each requested stage, in the stages' order. */
  readonly byStage: readonly LeadCount<LeadStage>[];
  /** The most frequent first; null: leads without a source. */
  readonly bySource: readonly LeadCount<string | null>[];
  /** Leads created since then are all counted; null: all leads are. */
  readonly completeSince: Date | null;
}

/**
 * Counts leads by stage and by source. If more than MAX_EXAMINED leads are in the range of `created`, it counts the
 * newest. Without a filter by source, key or creation time, it then counts each stage to MAX_OF_STAGE.
 *
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function countLeads(
  { store }: Reading,
  { studioId, filter: given }: CountLeadsQuery,
): Promise<LeadCounts> {
  const faults = new Faults();
  const filter = parseFilter(given, faults);
  await existingStudio(store, studioId, faults);
  faults.refuseIfAny();

  const [stages, sources] = [new Map<LeadStage, number>(), new Map<string | null, number>()];
  let before: string | null = null;
  let oldest: Date | undefined;
  for (let examined = 0; examined === 0 || (before !== null && examined < MAX_EXAMINED); examined += MAX_PER_READ) {
    const { records, next } = await store.listLeadsToCount(studioId, before, MAX_PER_READ, filter);
    oldest = records.at(-1)?.createdAt ?? oldest;
    for (const lead of records) {
      if (filter && !isMatch(filter, lead)) continue;
      stages.set(lead.stage, (stages.get(lead.stage) ?? 0) + 1);
      sources.set(lead.sourceId, (sources.get(lead.sourceId) ?? 0) + 1);
    }
    before = next;
    // A store may return without waiting for I/O.
    await yieldToEventLoop();
  }
  const isLowerBound = before !== null && (await store.listLeadsToCount(studioId, before, 1, filter)).next !== null;
  const bySource = [...sources].map(([of, count]) => ({ of, count, isLowerBound }));
  const isByStageAlone = !filter || (filter.sourceIds.length === 0 && !filter.apiKeyIds && isAnyTime(filter.created));
  const wanted = LEAD_STAGES.filter((stage) => !filter || filter.stages.length === 0 || filter.stages.includes(stage));
  const byStage: LeadCount<LeadStage>[] = [];
  for (const stage of wanted) {
    const counted = stages.get(stage) ?? 0;
    const all = isLowerBound && isByStageAlone ? await store.measureStage(studioId, stage, filter, MAX_OF_STAGE) : 0;
    // Leads created meanwhile may be in only one of the two counts.
    const isAll = !isLowerBound || (isByStageAlone && all < MAX_OF_STAGE);
    byStage.push({ of: stage, count: Math.max(counted, all), isLowerBound: !isAll });
  }
  return {
    byStage,
    bySource: bySource.sort((a, b) => b.count - a.count).slice(0, MAX_LEAD_SOURCES),
    // Other leads may have been created in the same millisecond.
    completeSince: isLowerBound && oldest ? new Date(oldest.getTime() + 1) : null,
  };
}

/** Yields all studios with the number of their readable leads that are not erased. */
export async function* everyStudioWithLeads({ store }: Reading) {
  for await (const studio of everyStudio({ store })) {
    let leads = 0;
    const pages = eachStoredPage((before) => store.listLeadsToCount(studio.id, before, MAX_PER_READ));
    for await (const { records } of pages) leads += records.length;
    yield { studio, leads };
  }
}
