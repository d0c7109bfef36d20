import { type Filter, UUID } from 'mongodb';
import { MAX_LEADS_PER_CONTACT } from '../../domain/lead.ts';
import { leadsOfContact, readableOrNull, readableOrThrow } from '../checked.ts';
import { readPage } from '../pages.ts';
import type { LeadErasureStore, LeadStore, ReportUnreadable } from '../store.ts';
import type { Connection } from './connection.ts';
import {
  claimsWithKey,
  creationOf,
  enquiredLeadOf,
  erasedLeadOf,
  FIRST_ID,
  isErased,
  LAST_ID,
  type LeadDocument,
  type LeadKey,
  lastIdOfFull,
  leadIdsAfter,
  leadKey,
  nameOf,
  openClaim,
  presentLeadOf,
  studiosOf,
  WITHOUT_HISTORY,
  WITHOUT_ORIGINAL,
} from './documents.ts';
import { leadFinder } from './leads.ts';

/** The maximum number of leads of a contact that are read, if some are unreadable. */
const MAX_EXAMINED_OF_CONTACT = 10 * MAX_LEADS_PER_CONTACT;

export function mongoLeadReads(
  { leads, call }: Connection,
  report: ReportUnreadable,
): Omit<LeadStore & LeadErasureStore, 'createLead' | 'changeLeadStage' | 'updateLead' | 'eraseLead' | 'deleteLeads'> {
  const documentsById = leadFinder<LeadKey>(leads, {
    filterOf: (keys) => ({
      studioId: studiosOf(keys),
      _id: { $in: [...keys] },
    }),
    namesOf: ({ _id }) => [nameOf(_id)],
    wanted: (key) => [nameOf(key)],
  });
  const documentOf = (studioId: string, leadId: string) =>
    call((deadline) => documentsById.submit(leadKey(studioId, leadId), deadline));

  return {
    findLeadByIdempotencyKey: (studioId, idempotencyKey) =>
      call(() => leads.findOne({ studioId, 'idempotency.key': new UUID(idempotencyKey) }, WITHOUT_HISTORY)).then(
        (found) => found && creationOf(found),
      ),

    async findLead(studioId, leadId) {
      const document = await documentOf(studioId, leadId);
      return document && readableOrThrow(enquiredLeadOf(document));
    },

    async presenceOfLead(studioId, leadId) {
      const document = await documentOf(studioId, leadId);
      return document && (isErased(document) ? 'erased' : 'present');
    },

    isLeadChangeApplied: (studioId, leadId, requestId) =>
      call(async () => {
        const appliedRequests = new UUID(requestId);
        const applied = { studioId, _id: leadKey(studioId, leadId), appliedRequests } as Filter<LeadDocument>;
        return (await leads.findOne(applied, WITHOUT_HISTORY)) !== null;
      }),

    findLeadsOfContact: (studioId, contactKeys, former) =>
      call(async () => {
        // By prefix: some engines apply the two bounds of a range to different elements of an array.
        const openContactKey = { $in: contactKeys.flatMap((key) => claimsWithKey(key, former)) as string[] };
        const find = (count: number) =>
          leads.find({ studioId, openContactKey }, WITHOUT_ORIGINAL).limit(count).toArray();
        const sorted = (found: readonly LeadDocument[]) => {
          const each = new Map(found.map((lead) => [nameOf(lead._id), lead])).values();
          return leadsOfContact([...each].map(presentLeadOf), report);
        };
        const found = await find(MAX_LEADS_PER_CONTACT);
        const all = sorted(found);
        if (found.length < MAX_LEADS_PER_CONTACT) return all;
        // Of more leads than that, the open ones must be included.
        const open = { studioId, openContactKey: { $in: contactKeys.map(openClaim) } };
        const first = await leads.find(open, WITHOUT_ORIGINAL).toArray();
        const rest = all.leads.length < found.length ? await find(MAX_EXAMINED_OF_CONTACT) : found;
        const more = sorted([...first, ...rest]);
        return { ...more, leads: more.leads.slice(0, MAX_LEADS_PER_CONTACT) };
      }),

    listLeads: (studioId, before, limit) =>
      call(() => {
        const read = (after: string | null, count: number) => {
          const end = after === null ? { $lte: leadKey(studioId, LAST_ID) } : { $lt: leadKey(studioId, after) };
          const _id = { $gte: leadKey(studioId, FIRST_ID), ...end };
          return leads.find({ studioId, _id }, WITHOUT_ORIGINAL).sort({ _id: -1 }).limit(count).toArray();
        };
        return readPage({ read, idOf, check: presentLeadOf }, { after: before, limit }, report);
      }),

    walkLeads: (studioId, first, limit) =>
      call(() => {
        const read = (after: string | null, count: number) => {
          const _id = leadIdsAfter(studioId, after);
          return leads.find({ studioId, _id }, WITHOUT_HISTORY).sort({ _id: 1 }).limit(count).toArray();
        };
        return readPage({ read, idOf, check: enquiredLeadOf }, { after: first, limit }, report);
      }),

    walkErasedLeads: (studioId, after, limit) =>
      call(async () => {
        const _id = leadIdsAfter(studioId, after);
        const found = await leads.find({ studioId, _id }, WITHOUT_ORIGINAL).sort({ _id: 1 }).limit(limit).toArray();
        const erased = found.filter(isErased).flatMap((each) => readableOrNull(erasedLeadOf(each), report) ?? []);
        return { leads: erased, next: lastIdOfFull(found, limit) };
      }),
  };
}

const idOf = ({ _id }: LeadDocument): string => _id.id.toString();
