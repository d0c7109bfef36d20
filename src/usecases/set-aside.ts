import { crmIdFault, reasonFault } from '../../common/rules/field-rules.ts';
import { type Actor, OF_DEPLOYMENT, type Requester } from '../domain/audit.ts';
import type { Consumer } from '../domain/consumer.ts';
import { setAsideBeforePage, setAsideTokenAfter } from '../domain/cursor.ts';
import { type LeadSetAside, MAX_ACKNOWLEDGEMENTS, type SetAside, type Settled } from '../domain/lead-change.ts';
import { Faults } from '../domain/refusal.ts';
import { asStored, noteNamed } from './change-feed.ts';
import type { Changing, Reading } from './dependencies.ts';
import { noteLeadIds, notePageFaults, type PageQuery, requestedBy } from './requests.ts';

/** How long a lead is set aside at most before it comes again by itself; milliseconds. */
const MAX_DEFERRAL_MS = 604_800_000;

/** The number of leads on a page. */
const DEFAULT_PAGE_SIZE = 100;

/**
 * Sets leads aside that a consumer cannot process now, so that they hold up no others. A lead that has changed since stays.
 *
 * @param leads an invalid time is one that is none
 * @param by whom the audit log names; absent: the consumer itself, whom it has not
 * @throws Refusal INVALID_REQUEST
 */
export async function setAsideLeadChanges(
  { store, clock }: Changing,
  { number, name }: Consumer,
  leads: readonly SetAside[],
  by?: Actor,
): Promise<Settled> {
  const faults = new Faults();
  const now = clock();
  if (leads.length === 0) faults.note('leads', 'must have at least one element');
  const isTooLate = (time: Date) => !(time.getTime() <= now.getTime() + MAX_DEFERRAL_MS);
  noteNamed(faults, 'leads', leads, ({ reason, retryAt }) => ({
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

/** Lists what a consumer has set aside: first what comes again by itself, soonest first. @throws Refusal INVALID_REQUEST */
export async function listSetAside(
  { store }: Reading,
  { number }: Consumer,
  { pageSize, pageToken }: PageQuery,
): Promise<{ readonly leads: readonly LeadSetAside[]; readonly nextPageToken: string }> {
  const after = pageToken === '' ? null : setAsideBeforePage(number, pageToken);
  const faults = new Faults();
  notePageFaults(faults, { pageSize, pageToken }, after, 'must be unchanged, from this consumer');
  faults.refuseIfAny();
  const limit = Math.min(pageSize || DEFAULT_PAGE_SIZE, MAX_ACKNOWLEDGEMENTS);
  const leads = await store.listDeliveriesSetAside(number, after ?? null, limit);
  const last = leads.at(-1);
  return { leads, nextPageToken: last && leads.length === limit ? setAsideTokenAfter(number, last) : '' };
}

/** What is taken back: some leads of a studio, or all, page by page; not yet checked. */
export interface TakeBackCommand extends Requester {
  readonly studioId: string;
  readonly leadIds: readonly string[];
  readonly all: boolean;
  readonly pageToken: string;
}

/** Has a consumer sent leads again that it has set aside. @throws Refusal INVALID_REQUEST */
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
