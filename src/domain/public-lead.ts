import { DAY_MS } from '../../common/units.ts';
import type { Lead, LeadStage } from './lead.ts';

/** A lead with its texts as JSON, and its times in milliseconds. */
export interface LeadInJson {
  readonly id: string;
  readonly stage: LeadStage;
  readonly sourceId: string | null;
  readonly displayName: string;
  readonly note: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/**
 * Returns a lead's PublicLead as JSON.
 *
 * @rule 2.1.id 2.1.displayName 2.1.sourceId 2.1.note 2.1.createdAt 2.1.updatedAt 2.1.nothing-else 2.1.no-contact
 */
export function publicLead(lead: LeadInJson): string {
  const { id, displayName, stage, sourceId, note, createdAt, updatedAt } = lead;
  const source = sourceId === null ? 'null' : `"${sourceId}"`;
  const texts = `"displayName":${displayName},"stage":"${stage}","sourceId":${source},"note":${note}`;
  return `{"id":"${id}",${texts},"createdAt":"${isoText(createdAt)}","updatedAt":"${isoText(updatedAt)}"}`;
}

/** Does what publicLead does, for a lead with plain texts. */
export const toPublicLead = (lead: Lead): string =>
  publicLead({
    ...lead,
    displayName: JSON.stringify(lead.displayName),
    note: JSON.stringify(lead.note),
    createdAt: lead.createdAt.getTime(),
    updatedAt: lead.updatedAt.getTime(),
  });

const HUNDRED = Array.from({ length: 100 }, (_, number) => `${number}`.padStart(2, '0'));
const THOUSAND = Array.from({ length: 1000 }, (_, number) => `${number}`.padStart(3, '0'));

/** The day of the last time that was written, and its text with the `T`. */
let [writtenDay, dayText] = [Number.NaN, ''];

/** Does what `toISOString` does, faster: most times on a page fall on the same day. */
function isoText(ms: number): string {
  const day = Math.floor(ms / DAY_MS);
  if (day !== writtenDay) [writtenDay, dayText] = [day, new Date(day * DAY_MS).toISOString().slice(0, -13)];
  const msOfDay = ms - day * DAY_MS;
  const seconds = Math.floor(msOfDay / 1000);
  const minutes = Math.floor(seconds / 60);
  return `${dayText}${HUNDRED[Math.floor(minutes / 60)]}:${HUNDRED[minutes % 60]}:${HUNDRED[seconds % 60]}.${THOUSAND[msOfDay % 1000]}Z`;
}
