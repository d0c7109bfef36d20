import { crmIdFault, reasonFault } from '../../common/rules/field-rules.ts';
import { type Actor, OF_DEPLOYMENT, type Requester } from '../domain/audit.ts';
import type { Consumer } from '../domain/consumer.ts';
import { setAsideBeforePage, setAsideTokenAfter } from '../domain/cursor.ts';
import { type LeadSetAside, MAX_ACKNOWLEDGEMENTS, type SetAside, type StateCounts } from '../domain/lead-change.ts';
import { Faults } from '../domain/refusal.ts';
import { asStored, noteStateFaults } from './change-feed.ts';
import type { Changing, Reading } from './dependencies.ts';
import { noteLeadIds, type PageQuery, requestedBy, startOfPage } from './requests.ts';

/** The maximum time until a lead that was set aside is sent again; milliseconds. */
const MAX_DEFERRAL_MS = 604_800_000;

const DEFAULT_PAGE_SIZE = 100;

/**
 * Sets aside leads that a consumer cannot process yet, so that they block no others. A lead that has changed since is not
 * set aside.
 *
 * @param by the actor for the audit log; absent: the consumer itself, whose calls the log does not record
 * @throws Refusal INVALID_REQUEST
 */
export async function setAsideLeadChanges(
  { store, clock }: Changing,
  { number, name }: Consumer,
  leads: readonly SetAside[],
  by?: Actor,
): Promise<StateCounts> {
  const faults = new Faults();
  const now = clock();
  if (leads.length === 0) faults.note('leads', 'must have at least one element');
  const isTooLate = (time: Date) => !(time.getTime() <= now.getTime() + MAX_DEFERRAL_MS);
  noteStateFaults(faults, 'leads', leads, ({ reason, retryAt }) => ({
    reason: reasonFault(reason),
    retryTime: retryAt && isTooLate(retryAt) ? 'must be a time of the next 7 days' : undefined,
  }));
  faults.refuseIfAny();
  const named = leads.map(asStored);
  if (by) {
    for (const [studioId, [first]] of Map.groupBy(named, (lead) => lead.studioId)) {
      const act = { action: 'leads-set-aside', from: first?.reason ?? null, to: name } as const;
      await store.recordAct(studioId, act, requestedBy(by, clock));
    }
  }
  return store.setAsideDeliveries(number, named, now);
}

/** Lists a consumer's leads set aside: first those with a retry time, soonest first. @throws Refusal INVALID_REQUEST */
export async function listSetAside(
  { store }: Reading,
  { number }: Consumer,
  page: PageQuery,
): Promise<{ readonly leads: readonly LeadSetAside[]; readonly nextPageToken: string }> {
  const faults = new Faults();
  const after = startOfPage(faults, page, (token) => setAsideBeforePage(number, token), ', from this consumer');
  faults.refuseIfAny();
  const limit = Math.min(page.pageSize || DEFAULT_PAGE_SIZE, MAX_ACKNOWLEDGEMENTS);
  const leads = await store.listDeliveriesSetAside(number, after, limit);
  const last = leads.at(-1);
  return { leads, nextPageToken: last && leads.length === limit ? setAsideTokenAfter(number, last) : '' };
}

/** The unchecked choice of what to take back: some leads of a studio, or all, page by page. */
export interface TakeBackCommand extends Requester {
  readonly studioId: string;
  readonly leadIds: readonly string[];
  readonly all: boolean;
  readonly pageToken: string;
}

/** Sends leads again that a consumer has set aside. @throws Refusal INVALID_REQUEST */
export async function takeBackLeadChanges(
  { store, clock }: Changing,
  consumer: Consumer,
  { studioId, leadIds, all, pageToken, ...by }: TakeBackCommand,
): Promise<{ readonly takenBackCount: number; readonly nextPageToken: string }> {
  const faults = new Faults();
  if (all === leadIds.length > 0) faults.note('leadIds', 'must be given, or else all');
  noteLeadIds(faults, leadIds);
  if (!all) faults.note('studioId', crmIdFault(studioId));
  else if (studioId !== '') faults.note('studioId', 'must be empty with all');
  if (!all && pageToken !== '') faults.note('pageToken', 'must be empty without all');
  faults.refuseIfAny();
  if (pageToken === '') {
    const act = { action: 'leads-resent', to: consumer.name } as const;
    await store.recordAct(all ? OF_DEPLOYMENT : studioId, act, requestedBy(by, clock));
  }
  const page = all && (await listSetAside({ store }, consumer, { pageSize: MAX_ACKNOWLEDGEMENTS, pageToken }));
  const leads = page ? page.leads : leadIds.map((leadId) => ({ studioId, leadId: leadId.toLowerCase() }));
  return {
    takenBackCount: await store.takeBackDeliveries(consumer.number, leads),
    nextPageToken: page ? page.nextPageToken : '',
  };
}
