import type { PublicLead } from '../../common/rules/public-api.ts';
import { DAY_MS } from '../../common/units.ts';
import type { Lead } from './lead.ts';
import type { OriginalFields } from './lead-data.ts';

/** The members of a public lead that its sender gave, as JSON without braces. */
export const senderText = ({ displayName, sourceId, note }: OriginalFields): string =>
  JSON.stringify({ displayName, sourceId, note } satisfies Partial<PublicLead>).slice(1, -1);

/**
 * Returns the JSON of the PublicLead of a lead.
 *
 * @param text its senderText
 * @rule 2.1.id 2.1.displayName 2.1.sourceId 2.1.note 2.1.createdAt 2.1.updatedAt 2.1.nothing-else 2.1.no-contact
 */
export function publicLead(lead: Pick<Lead, 'id' | 'stage' | 'createdAt' | 'updatedAt'>, text: string): string {
  const { id, stage, createdAt, updatedAt } = lead;
  // Within a value, a backslash would precede the quote.
  const nameEnd = text.indexOf(',"sourceId":');
  const [ofName, others] = [text.slice(0, nameEnd), text.slice(nameEnd)];
  return `{"id":"${id}",${ofName},"stage":"${stage}"${others},"createdAt":"${isoText(createdAt)}","updatedAt":"${isoText(updatedAt)}"}`;
}

const HUNDRED = Array.from({ length: 100 }, (_, number) => `${number}`.padStart(2, '0'));
const THOUSAND = Array.from({ length: 1000 }, (_, number) => `${number}`.padStart(3, '0'));

/** The day of the last time that was written, and its text with the `T`. */
let [writtenDay, dayText] = [Number.NaN, ''];

/** Returns the same as `toISOString`, in a fraction of its time: most times of a page are of one day. */
export function isoText(time: Date): string {
  const ms = time.getTime();
  const day = Math.floor(ms / DAY_MS);
  if (day !== writtenDay) [writtenDay, dayText] = [day, new Date(day * DAY_MS).toISOString().slice(0, -13)];
  const ofDay = ms - day * DAY_MS;
  const seconds = Math.floor(ofDay / 1000);
  const minutes = Math.floor(seconds / 60);
  return `${dayText}${HUNDRED[Math.floor(minutes / 60)]}:${HUNDRED[minutes % 60]}:${HUNDRED[seconds % 60]}.${THOUSAND[ofDay % 1000]}Z`;
}
