import { type Filter, type FindOptions, UUID } from 'mongodb';
import { idAndTime } from '../../domain/cursor.ts';
import { LEAD_STAGES, MAX_LEADS_PER_CONTACT } from '../../domain/lead.ts';
import { idBounds, isByUpdate, type LeadFilter } from '../../domain/lead-filter.ts';
import { toPublicLead } from '../../domain/public-lead.ts';
import { checkedCountedLead, leadsOfContact, matching, readableOrNull, readableOrThrow } from '../checked.ts';
import { filteredPage, readPage } from '../pages.ts';
import type { LeadReadStore } from '../port/lead-reads.ts';
import type { Connection } from './connection.ts';
import {
  creationFromDocument,
  enquiredLeadFromDocument,
  erasedLeadFromDocument,
  isErased,
  type LeadDocument,
  leadIn,
  PUBLIC,
  presentLeadFromDocument,
  recordFromDocument,
  SHOWN,
  WITHOUT_ORIGINAL,
} from './lead-documents.ts';
import { leadFinder } from './leads.ts';
import {
  among,
  keyText,
  type LeadKey,
  lastIdOfFull,
  leadIdsBetween,
  leadKey,
  READ,
  WITHOUT_HISTORY,
} from './queries.ts';
import { conditionsForKey, openKey } from './uniqueness-keys.ts';

/** The maximum number of a contact's leads that are read when some are unreadable. */
const MAX_EXAMINED_OF_CONTACT = 10 * MAX_LEADS_PER_CONTACT;

/** Reads whether a lead has something to erase. */
const FOR_ERASURE = { ...READ, projection: { erasedAt: 1 } } as const;

/** Reads the fields of a count. */
const FOR_COUNT = {
  ...READ,
  projection: { studioId: 1, stage: 1, sourceId: 1, createdAt: 1, updatedAt: 1, erasedAt: 1, apiKeyId: 1 },
  sort: { _id: -1 },
} as const;

export const mongoLeadReads = (connection: Connection): LeadReadStore => ({
  ...readsOfOne(connection),
  ...leadLists(connection),
  ...searchesAndWalks(connection),
});

function readsOfOne({ leads, call, report }: Connection) {
  /** Returns a function that reads some fields of a lead, combined with concurrent reads. */
  function reader(options: FindOptions) {
    const finder = leadFinder<LeadKey>(leads, {
      toFilter: among,
      toNames: ({ _id }) => [keyText(_id)],
      wanted: (key) => [keyText(key)],
      options,
    });
    return async <Read>(studioId: string, leadId: string, read: (document: LeadDocument) => Read) => {
      const document = await call((deadline) => finder.submit(leadKey(studioId, leadId), deadline));
      return document && read(document);
    };
  }
  const [readPublic, readShown, readAll] = [reader(PUBLIC), reader(SHOWN), reader(WITHOUT_HISTORY)];

  return {
    findLeadByIdempotencyKey: (studioId, idempotencyKey) =>
      call(() => leads.findOne({ studioId, 'idempotency.key': new UUID(idempotencyKey) }, WITHOUT_HISTORY)).then(
        (found) => found && creationFromDocument(found),
      ),

    findLead: (studioId, leadId) =>
      readShown(studioId, leadId, (document) => readableOrThrow(enquiredLeadFromDocument(document))),

    findPublicLead: (studioId, leadId) =>
      readPublic(studioId, leadId, (document) => {
        const lead = readableOrThrow(presentLeadFromDocument(document));
        return lead && toPublicLead(lead);
      }),

    findLeadRecord: (studioId, leadId) => readAll(studioId, leadId, (document) => recordFromDocument(document, report)),

    presenceOfLead: (studioId, leadId) =>
      readPublic(studioId, leadId, (document) => (isErased(document) ? 'erased' : 'present')),

    isLeadChangeApplied: (studioId, leadId, requestId) =>
      call(async () => {
        const appliedRequests = new UUID(requestId);
        const applied = { studioId, _id: leadKey(studioId, leadId), appliedRequests } as Filter<LeadDocument>;
        return (await leads.findOne(applied, WITHOUT_HISTORY)) !== null;
      }),
  } satisfies Partial<LeadReadStore>;
}

function searchesAndWalks({ leads, call, report }: Connection) {
  async function next(studioId: string, after: string | null, options: FindOptions & { readonly limit: number }) {
    const filter = { studioId, _id: leadIdsBetween(studioId, after) };
    const found = await leads.find(filter, { ...options, sort: { _id: 1 } }).toArray();
    return { found, next: lastIdOfFull(found, options.limit) };
  }

  return {
    findLeadsOfContact: (studioId, contactKeys, former) =>
      call(async () => {
        // By prefix, because some engines apply the two bounds of a range to different elements of an array.
        const openContactKey = { $in: contactKeys.flatMap((key) => conditionsForKey(key, former)) as string[] };
        const find = (limit: number) =>
          leads.find({ studioId, openContactKey }, { ...WITHOUT_ORIGINAL, limit }).toArray();
        const sorted = (found: readonly LeadDocument[]) => {
          const unique = new Map(found.map((lead) => [keyText(lead._id), lead])).values();
          return leadsOfContact([...unique].map(presentLeadFromDocument), report);
        };
        const found = await find(MAX_LEADS_PER_CONTACT);
        const all = sorted(found);
        if (found.length < MAX_LEADS_PER_CONTACT) return all;
        // Beyond that number, the open leads must be included.
        const open = { studioId, openContactKey: { $in: contactKeys.map(openKey) } };
        const first = former ? [] : await leads.find(open, WITHOUT_ORIGINAL).toArray();
        const rest = all.leads.length < found.length ? await find(MAX_EXAMINED_OF_CONTACT) : found;
        const more = sorted([...first, ...rest]);
        return { ...more, leads: more.leads.slice(0, MAX_LEADS_PER_CONTACT) };
      }),

    walkUnerasedLeads: (studioId, after, limit) =>
      call(async () => {
        const { found, ...more } = await next(studioId, after, { ...FOR_ERASURE, limit });
        const present = found.filter((each) => !isErased(each));
        return { leads: present.map(({ _id }) => ({ id: _id.id.toString() })), ...more };
      }),

    walkErasedLeads: (studioId, after, limit) =>
      call(async () => {
        const { found, ...more } = await next(studioId, after, { ...WITHOUT_ORIGINAL, limit });
        const erased = found
          .filter(isErased)
          .flatMap((each) => readableOrNull(erasedLeadFromDocument(each), report) ?? []);
        return { leads: erased, ...more };
      }),
  } satisfies Partial<LeadReadStore>;
}

function leadLists({ leads, call, report }: Connection) {
  const page =
    (first: 'newest' | 'oldest'): LeadReadStore['listLeads'] =>
    (studioId, after, limit, filter) =>
      call(() => {
        const [order, options] = first === 'newest' ? ([-1, PUBLIC] as const) : ([1, WITHOUT_HISTORY] as const);
        const check = (document: LeadDocument) =>
          matching(filter, first === 'newest' ? presentLeadFromDocument(document) : enquiredLeadFromDocument(document));
        if (filter && isByUpdate(filter, first)) {
          const sort = { updatedAt: order, '_id.id': order } as const;
          const find = (where: object, limit: number) =>
            leads.find({ studioId, ...where }, { ...options, sort, limit }).toArray();
          const read = byUpdate(first, filter, find);
          const toPosition = ({ _id: { id }, updatedAt }: LeadDocument) => `${id} ${new Date(updatedAt).getTime()}`;
          return readPage(filteredPage({ read, toId: toPosition, check }), { after, limit }, report);
        }
        const [above, below] = idBounds(filter);
        const read = (position: string | null, limit: number) => {
          const [start, end] = first === 'newest' ? [above, position ?? below] : [position ?? above, below];
          const _id = leadIdsBetween(studioId, start, end);
          return leads.find({ studioId, _id }, { ...options, sort: { _id: order }, limit }).toArray();
        };
        const listing = { read, toId: ({ _id }: LeadDocument) => _id.id.toString(), check };
        return readPage(filter ? filteredPage(listing) : listing, { after, limit }, report);
      });
  const listLeads = page('newest');

  return {
    listLeads,

    async listPublicLeads(studioId, before, limit) {
      const { records, ...more } = await listLeads(studioId, before, limit);
      return { ...more, records: records.map(toPublicLead) };
    },

    walkLeads: page('oldest'),

    listLeadsToCount: (studioId, before, limit, filter) =>
      call(async () => {
        const [above, below] = idBounds(filter);
        const _id = leadIdsBetween(studioId, above, before ?? below);
        const found = await leads.find({ studioId, _id }, { ...FOR_COUNT, limit }).toArray();
        const records = found.flatMap((each) =>
          isErased(each) ? [] : (readableOrNull(checkedCountedLead(leadIn(each)), report) ?? []),
        );
        return { records, next: lastIdOfFull(found, limit) };
      }),

    measureStage: (studioId, stage, filter, limit) =>
      call(() => {
        const { start, end } = filter?.updated ?? { start: null, end: null };
        const updatedAt = { $gte: start ?? new Date(FIRST_MS), $lt: end ?? new Date(LAST_MS) };
        const counted: object = { studioId, stage, erasedAt: null, updatedAt };
        return leads.countDocuments(counted, { limit });
      }),
  } satisfies Partial<LeadReadStore>;
}

/** The first period of changes that is read, and the factor by which each further one is longer. An import may fill any period. */
const FIRST_PERIOD_MS = 1000;
const LONGER = 64;

/** The range of readable times; milliseconds. */
const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_MS = 8.64e15;

/**
 * Reads leads of some stages, or of all, in the order of their changes. Some engines sort all matches instead of
 * reading the index in order. Each query is therefore limited to a period; further ones follow if it has too few leads.
 */
function byUpdate(
  first: 'newest' | 'oldest',
  { stages, updated }: LeadFilter,
  find: (where: object, count: number) => Promise<LeadDocument[]>,
) {
  const stage = { $in: stages.length === 0 ? LEAD_STAGES : stages };
  const [from, to] = [updated.start?.getTime() ?? FIRST_MS, updated.end?.getTime() ?? LAST_MS];
  let firstPeriod = FIRST_PERIOD_MS;
  return async (position: string | null, count: number): Promise<LeadDocument[]> => {
    const [id, ms] = position === null ? [] : idAndTime(position);
    const isNewest = first === 'newest';
    const operator = isNewest ? '$lt' : '$gt';
    // Among equal times, the id of the position decides.
    const beyond = ms !== undefined && {
      $or: [{ updatedAt: { [operator]: new Date(ms) } }, { '_id.id': { [operator]: new UUID(id) } }],
    };
    let [start, end] = isNewest ? [from, Math.min(to, (ms ?? to) + 1)] : [Math.max(from, ms ?? from), to];
    const found: LeadDocument[] = [];
    for (let period = firstPeriod; ; period *= LONGER) {
      const edge = isNewest ? Math.max(start, Math.min(end, Date.now()) - period) : Math.min(end, start + period);
      const [$gte, $lt] = (isNewest ? [edge, end] : [start, edge]).map((time) => new Date(time));
      const where = { stage, erasedAt: null, updatedAt: { $gte, $lt }, ...beyond };
      found.push(...(await find(where, count - found.length)));
      // The next read of the page probably finds as many in a period of this length.
      firstPeriod = Math.max(FIRST_PERIOD_MS, computeSpanMs(found));
      if (found.length === count || edge === (isNewest ? start : end)) return found;
      if (isNewest) end = edge;
      else start = edge;
    }
  };
}

/** Returns the time span between the first and last change of ordered leads; milliseconds. */
const computeSpanMs = (found: readonly LeadDocument[]): number =>
  Math.abs(Number(found.at(-1)?.updatedAt ?? 0) - Number(found[0]?.updatedAt ?? 0));
