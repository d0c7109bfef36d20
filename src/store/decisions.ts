import { isDeepStrictEqual } from 'node:util';
import { MAX_CONSUMERS } from '../../common/rules/field-rules.ts';
import { type ApiKey, isLive, KEY_SLOTS } from '../domain/api-key.ts';
import { type Actor, type AuditContext, type AuditEvent, actorIn, OF_DEPLOYMENT } from '../domain/audit.ts';
import { type Consumer, firstBackfills, type NewConsumer } from '../domain/consumer.ts';
import { isSameContact, MAX_FORMER_KEYS, type OpenClaims } from '../domain/contact.ts';
import type { Hold } from '../domain/hold.ts';
import {
  type Correction,
  correctedFields,
  type ErasedLead,
  type Fingerprint,
  isOpen,
  type KeptEnquiries,
  type Lead,
  nextUpdate,
  type OriginalFields,
  sameData,
  withEnquiry,
} from '../domain/lead.ts';
import { type ChangeMark, marked } from '../domain/lead-change.ts';
import {
  keepingText,
  type LeadSource,
  type MemberRole,
  memberText,
  numberText,
  STUDIO_STATUSES,
  type Studio,
  sourceText,
} from '../domain/studio.ts';
import { type Checked, isOneOf, readableOrThrow } from './checked.ts';
import { regionsToNote } from './release-1-1.ts';
import {
  type Act,
  type ApiKeyCommand,
  type ApiKeyReplacement,
  type ChangeLeadStageOutcome,
  type CreateConsumerOutcome,
  type CreateLeadOutcome,
  type EarlierCreation,
  type EndStudioOutcome,
  type ErasedCreation,
  type EraseLeadOutcome,
  type HoldPut,
  type LeadErasure,
  type LeadStageChange,
  type LeadUpdate,
  type PutHoldOutcome,
  type PutOutcome,
  type PutStudioOutcome,
  type ReplaceApiKeyOutcome,
  type StudioPut,
  UnreadableRecord,
  type UpdateLeadOutcome,
} from './store.ts';

/**
 * What a command decides about a record as it was read. A decision is pure, and made again whenever the record has changed
 * between its reading and its writing. What an unreadable record allows no decision about is thrown as UnreadableRecord.
 */
export type Decision<Outcome, Write> =
  /** Nothing is written. So it is if an earlier attempt, or an earlier call with the same request, was applied. */
  | { readonly outcome: Outcome }
  | {
      readonly outcome: Outcome;
      /** Null: nothing changes, and only a request that its caller may repeat is recorded. */
      readonly write: Write | null;
      readonly events?: readonly DecidedEvent[];
    };

export type DecidedEvent = Pick<AuditEvent, 'action' | 'time'> & Partial<Pick<AuditEvent, 'from' | 'to'>> & Actor;

/** @typeParam Found the record as it is stored; null: there is none */
export type Decide<Found, Command, Outcome, Write> = (
  found: Found | null,
  command: Command,
  isApplied: boolean,
) => Decision<Outcome, Write>;

export interface StoredLead {
  /** Null: it was erased. */
  readonly lead: Checked<Lead> | null;
  /** What remains of it once it is erased; before, `erasedAt` means nothing. */
  readonly remaining: Checked<ErasedLead>;
  /** Whether what it was created with is stored. */
  readonly isCorrected: boolean;
  /** The readable keys that it claims or, once it is closed, is found by. */
  readonly contactKeys: readonly string[];
  /** The keys that it had before its contact was corrected. */
  readonly formerKeys: readonly string[];
  readonly mark: ChangeMark;
  readonly hold: Hold | null;
  /** Known to erasures. */
  readonly isStudioHeld: boolean;
}

export interface LeadWrite {
  readonly fields: Correction & Partial<Pick<Lead, 'stage'>> & Pick<Lead, 'updatedAt'>;
  readonly mark: ChangeMark;
  /** Replace those it has; absent: it keeps them. */
  readonly claims?: StoredClaims;
  /** What it was created with; absent: that is stored, or not needed. */
  readonly original?: OriginalFields;
  /** Whether all its personal data go, with all that is computed from such. */
  readonly isErasure?: boolean;
}

export interface StoredClaims extends OpenClaims, Pick<StoredLead, 'formerKeys'> {
  /** No other open lead may have one of the keys. Otherwise the lead is only found by them. */
  readonly isOpen: boolean;
}

type LeadDecision<Outcome> = Decision<Outcome, LeadWrite>;

export function decideLeadStage(
  found: StoredLead | null,
  { stage, claims, expectedUpdatedAt, now, ...by }: LeadStageChange,
  isApplied: boolean,
): LeadDecision<ChangeLeadStageOutcome> {
  const lead = found && readableOrThrow(found.lead);
  if (!lead) return { outcome: { kind: 'not-found' } };
  if (isApplied) return { outcome: { kind: 'changed', lead } };
  if (isStale(lead, expectedUpdatedAt)) return { outcome: { kind: 'stale' } };
  if (lead.stage === stage) return { outcome: { kind: 'unchanged', lead }, write: null };
  const keepsClaims = isOpen(stage) === isOpen(lead.stage);
  if (!keepsClaims && !isSameContact(lead.contact, claims.contact)) return { outcome: { kind: 'other-contact' } };
  // A closed lead is found by what it had claimed, and by what it would claim now.
  const contactKeys = isOpen(stage) ? claims.contactKeys : [...new Set([...found.contactKeys, ...claims.contactKeys])];
  const { regionCode } = claims;
  const claimed = { contactKeys, regionCode, isOpen: isOpen(stage), formerKeys: found.formerKeys };
  const updatedAt = nextUpdate(lead.updatedAt, now);
  const mark = marked(found.mark, 'stage-changed', updatedAt);
  const [from, to] = [lead.stage, stage];
  return {
    outcome: { kind: 'changed', lead: { ...lead, stage, updatedAt } },
    write: { fields: { stage, updatedAt }, mark, ...(!keepsClaims && { claims: claimed }) },
    events: [{ action: 'lead-stage-changed', ...actorIn(by), time: updatedAt, from, to }],
  };
}

export function decideLeadUpdate(
  found: StoredLead | null,
  { correction, claims, expectedUpdatedAt, now, ...by }: LeadUpdate,
  isApplied: boolean,
): LeadDecision<UpdateLeadOutcome> {
  const lead = found && readableOrThrow(found.lead);
  if (!lead) return { outcome: { kind: 'not-found' } };
  if (isApplied) return { outcome: { kind: 'updated', lead } };
  if (isStale(lead, expectedUpdatedAt)) return { outcome: { kind: 'stale' } };
  const corrected = correctedFields(lead, correction);
  if (corrected.length === 0) return { outcome: { kind: 'unchanged', lead }, write: null };
  const updatedAt = nextUpdate(lead.updatedAt, now);
  const formerKeys = [...new Set([...found.formerKeys, ...found.contactKeys])].slice(0, MAX_FORMER_KEYS);
  return {
    outcome: { kind: 'updated', lead: { ...lead, ...correction, updatedAt } },
    write: {
      fields: { ...correction, updatedAt },
      mark: marked(found.mark, 'updated', updatedAt),
      ...(corrected.includes('contact') && { claims: { ...claims, isOpen: isOpen(lead.stage), formerKeys } }),
      ...(!found.isCorrected && { original: lead }),
    },
    events: [{ action: 'lead-updated', ...actorIn(by), time: updatedAt, to: corrected.join() }],
  };
}

export function decideLeadErasure(
  found: StoredLead | null,
  { now, expectedUpdatedAt, ...by }: LeadErasure,
  isApplied: boolean,
): LeadDecision<EraseLeadOutcome> {
  if (!found) return { outcome: { kind: 'not-found' } };
  const lead = readableOrThrow(found.remaining);
  if (found.lead === null) return { outcome: { kind: 'erased', lead, isNew: isApplied } };
  if (isStale(lead, expectedUpdatedAt)) return { outcome: { kind: 'stale' } };
  if (found.hold || found.isStudioHeld) return { outcome: { kind: 'held' } };
  const updatedAt = nextUpdate(lead.updatedAt, now);
  return {
    outcome: { kind: 'erased', lead: { ...lead, updatedAt, erasedAt: updatedAt }, isNew: true },
    write: { fields: { updatedAt }, mark: marked(found.mark, 'erased', updatedAt), isErasure: true },
    events: [{ action: 'lead-erased', ...actorIn(by), time: updatedAt }],
  };
}

/** @param found what has the hold: a lead that is not erased, or a studio */
export function decideHold(
  found: { readonly hold: Hold | null } | null,
  { leadId, reason, now: time, ...by }: HoldPut,
  isApplied: boolean,
): Decision<PutHoldOutcome, { readonly hold: Hold | null }> {
  if (!found) return { outcome: { kind: 'not-found' } };
  const { hold: before } = found;
  const from = before?.reason ?? null;
  if (isApplied || from === reason) return { outcome: { kind: 'put', before: null, hold: before }, write: null };
  const hold = reason === null ? null : { reason, createdAt: time };
  const action = leadId === null ? 'studio-hold-changed' : 'lead-hold-changed';
  return {
    outcome: { kind: 'put', before, hold },
    write: { hold },
    events: [{ action, ...actorIn(by), time, from, to: reason }],
  };
}

const isStale = ({ updatedAt }: Pick<Lead, 'updatedAt'>, expected: Date | null | undefined): boolean =>
  Boolean(expected && expected.getTime() !== updatedAt.getTime());

/**
 * The outcome of a creation with a used idempotency key: the earlier lead if the data is the same, else a conflict.
 * @rule 4.1.2
 */
export function replayOutcome(earlier: EarlierCreation | ErasedCreation, repeated: Fingerprint): CreateLeadOutcome {
  if ('kind' in earlier) return earlier;
  return sameData(earlier.fingerprint, repeated)
    ? { kind: 'replayed', lead: earlier.lead }
    : { kind: 'idempotency-conflict' };
}

/** A lead because of which a creation is refused, with what is stored of its past. */
export interface EnquiredLead extends Pick<StoredLead, 'lead' | 'mark'> {
  /** What it was created with; null: as it is now. */
  readonly original: Checked<OriginalFields> | null;
  readonly enquiries: KeptEnquiries;
}

export interface EnquiryWrite {
  readonly mark: ChangeMark;
  /** What it was created with is stored with its enquiries: cores of release 1.1 erase them together, and lose neither. */
  readonly original: OriginalFields & { readonly enquiries: KeptEnquiries };
}

/**
 * Decides whether what a refused creation says is kept at the lead because of which it is refused. The lead's own fields
 * stay, `updatedAt` too.
 *
 * @returns null: nothing is written
 */
export function decideEnquiry(
  { lead, original, enquiries: before, mark }: EnquiredLead,
  { createdAt: time, displayName, sourceId, note }: Lead,
  idempotencyKey: string,
): EnquiryWrite | null {
  // With a lead that cannot be read nothing can be compared, and what it was created with must not be replaced.
  if (lead === null || lead instanceof UnreadableRecord || original instanceof UnreadableRecord) return null;
  const enquiries = isOpen(lead.stage)
    ? withEnquiry(lead, before, { time, displayName, sourceId, note }, idempotencyKey)
    : null;
  const created = original ?? lead;
  return (
    enquiries && {
      mark: marked(mark, 'enquired', time),
      original: { displayName: created.displayName, sourceId: created.sourceId, note: created.note, enquiries },
    }
  );
}

export interface StoredApiKey {
  readonly key: Checked<ApiKey>;
  /** Returns its readable parts. */
  readonly legible: () => ApiKey | null;
  readonly slot: string;
}

export interface ApiKeyWrite
  extends Partial<Pick<ApiKey, 'memberId' | 'secretSha256' | 'secretHint' | 'expiresAt' | 'revokedAt' | 'quotaLimit'>> {
  /** Its own id is the slot of a revoked key. Absent: it keeps the one that it has. */
  readonly slot?: 'free' | 'own';
}

export function decideKeyReplacement(
  found: StoredApiKey | null,
  { memberId, secretSha256, secretHint, expiresAt, now, ...by }: ApiKeyReplacement,
  isApplied: boolean,
): Decision<ReplaceApiKeyOutcome, ApiKeyWrite> {
  if (!found) return { outcome: { kind: 'not-found' } };
  const key = readableOrThrow(found.key);
  const fields = { memberId, secretSha256, secretHint, expiresAt: expiresAt ?? key.expiresAt };
  const renewed = { ...key, ...fields };
  // The secret was valid, even if another call has replaced it since.
  if (isApplied) return { outcome: { kind: 'replaced', key: renewed } };
  if (key.revokedAt) return { outcome: { kind: 'revoked' } };
  if (!isLive(renewed, now)) return { outcome: { kind: 'expired' } };
  // A live key keeps its slot; an expired one needs a new one. So does one that only seems live, because this clock is
  // behind that of the process that freed its slot.
  const keepsSlot = isLive(key, now) && KEY_SLOTS.includes(found.slot);
  return {
    outcome: { kind: 'replaced', key: renewed },
    write: { ...fields, ...(!keepsSlot && { slot: 'free' }) },
    events: [{ action: 'api-key-replaced', ...actorIn({ ...by, memberId }), time: now }],
  };
}

export function decideKeyRevocation(
  found: StoredApiKey | null,
  { now: revokedAt, ...by }: ApiKeyCommand,
): Decision<ApiKey | null, ApiKeyWrite> {
  const key = found?.legible() ?? null;
  if (!found || key?.revokedAt) return { outcome: key };
  return {
    outcome: key && { ...key, revokedAt },
    write: { revokedAt, slot: 'own' },
    events: [{ action: 'api-key-revoked', ...actorIn(by), time: revokedAt }],
  };
}

export function decideKeyQuota(
  found: StoredApiKey | null,
  { quotaLimit, now: time, ...by }: ApiKeyCommand & Pick<ApiKey, 'quotaLimit'>,
  isApplied: boolean,
): Decision<ApiKey | null, ApiKeyWrite> {
  const key = found && readableOrThrow(found.key);
  if (!key || isApplied) return { outcome: key };
  if (key.quotaLimit === quotaLimit) return { outcome: key, write: null };
  const [from, to] = [numberText(key.quotaLimit), numberText(quotaLimit)];
  return {
    outcome: { ...key, quotaLimit },
    write: { quotaLimit },
    events: [{ action: 'api-key-quota-changed', ...actorIn(by), time, from, to }],
  };
}

export interface StoredStudio {
  readonly studio: Studio;
  /** What is stored, readable or not. */
  readonly status: unknown;
  readonly quotaLimit: unknown;
  /** Whether a core of release 1.1 renews its claims. */
  readonly isRenewing: boolean;
}

/** Changed fields of a studio; its former regions are added to those that are stored, and end a renewal. */
export type StudioWrite = Partial<Omit<Studio, 'id' | 'formerRegions' | 'hold'>> & Pick<Studio, 'formerRegions'>;

const NEW_STUDIO = {
  regionCode: null,
  quotaLimit: null,
  keepEnquiries: true,
  isTest: false,
  hold: null,
  retention: null,
  formerRegions: [],
};

export function decideStudio(
  found: StoredStudio | null,
  put: StudioPut,
  { now: time, ...by }: AuditContext,
  isApplied: boolean,
): Decision<PutStudioOutcome, StudioWrite> {
  const { id, status, regionCode, quotaLimit, keepEnquiries, isTest, retentionDays: days } = put;
  if (!found && status === undefined) return { outcome: null };
  if (found?.studio.status === 'ended') return { outcome: 'ended' };
  if (found && isTest !== undefined && isTest !== found.studio.isTest) return { outcome: 'other-kind' };
  if (found && isApplied) return { outcome: found.studio };
  const before = { ...NEW_STUDIO, ...found?.studio };
  const daysBefore = before.retention?.days ?? null;
  const fields = {
    ...(status !== undefined && { status }),
    ...(regionCode !== undefined && { regionCode }),
    ...(quotaLimit !== undefined && { quotaLimit }),
    ...(keepEnquiries !== undefined && { keepEnquiries }),
    ...(!found && isTest && { isTest }),
    // None is written again, since what is stored may be unreadable; the same days keep their grace.
    ...(days === null && { retention: null }),
    ...(days && days !== daysBefore && { retention: { days, since: time } }),
  };
  const noted = found ? regionsToNote(found.studio, put, found.isRenewing) : [];
  const formerRegions = [...new Set([...before.formerRegions, ...noted])];
  const from = isOneOf(STUDIO_STATUSES, found?.status) ? found.status : null;
  const events: DecidedEvent[] = [];
  const record = (action: DecidedEvent['action'], from: string | null, to: string | null) =>
    events.push({ action, ...actorIn(by), time, from, to });
  if (status !== undefined && status !== from) record('studio-status-changed', from, status);
  if (quotaLimit !== undefined && quotaLimit !== (found?.quotaLimit ?? null))
    record('studio-quota-changed', numberText(before.quotaLimit), numberText(quotaLimit));
  if (regionCode !== undefined && regionCode !== before.regionCode)
    record('studio-region-changed', before.regionCode, regionCode);
  if (keepEnquiries !== undefined && keepEnquiries !== before.keepEnquiries)
    record('studio-enquiries-changed', keepingText(before.keepEnquiries), keepingText(keepEnquiries));
  if (days !== undefined && days !== daysBefore)
    record('studio-retention-changed', numberText(daysBefore), numberText(days));
  return {
    outcome: { ...before, ...fields, id, formerRegions } as Studio,
    write: { ...fields, formerRegions: [...new Set(noted)] },
    events,
  };
}

export interface EndingStudio {
  readonly status: unknown;
  readonly hold: Hold | null;
  /** Their numbers. */
  readonly members: number;
  readonly sources: number;
}

export function decideEnd(
  found: EndingStudio | null,
  { now: time, ...by }: AuditContext,
): Decision<EndStudioOutcome, 'end'> {
  if (!found) return { outcome: { kind: 'not-found' } };
  const { status, hold, members, sources } = found;
  if (hold) return { outcome: { kind: 'held' } };
  const outcome = { kind: 'ended', members, sources } as const;
  if (status === 'ended') return { outcome, write: members + sources === 0 ? null : 'end' };
  const from = isOneOf(STUDIO_STATUSES, status) ? status : null;
  return {
    outcome,
    write: 'end',
    events: [{ action: 'studio-status-changed', ...actorIn(by), time, from, to: 'ended' }],
  };
}

/** Returns the events of a member or a source that changes. @param before what was stored of it; undefined: nothing */
export type EventsOfEntry = (before: unknown) => readonly DecidedEvent[];

/** The event of a member, whose role before may be of any release. @param role undefined: it is removed */
export const memberEvents =
  ({ now: time, ...by }: AuditContext, id: string, role?: MemberRole): EventsOfEntry =>
  (before) => {
    const [from, to] = [memberText(id, before), memberText(id, role)];
    return before === role ? [] : [{ action: 'studio-member-changed', ...actorIn(by), time, from, to }];
  };

/** The event of a source. @param source undefined: it is removed */
export const sourceEvents =
  ({ now: time, ...by }: AuditContext, id: string, source?: Pick<LeadSource, 'name' | 'enabled'>): EventsOfEntry =>
  (stored) => {
    const before = stored === undefined ? undefined : Object(stored);
    if (source && before && source.name === before.name && source.enabled === before.enabled) return [];
    const [from, to] = [sourceText(id, before), sourceText(id, source)];
    return [{ action: 'studio-source-changed', ...actorIn(by), time, from, to }];
  };

/** Decides about a new member or source of a studio, or a new value of one. @param status the studio's; null: there is none */
export function decideEntry(
  { status, before, isFull }: { readonly status: unknown; readonly before: unknown; readonly isFull: boolean },
  eventsOf: EventsOfEntry,
  isApplied: boolean,
): Decision<PutOutcome, 'put'> {
  if (status === null) return { outcome: 'no-studio' };
  if (status === 'ended') return { outcome: 'ended' };
  if (isApplied) return { outcome: 'put' };
  if (before === undefined && isFull) return { outcome: 'limit-reached' };
  return { outcome: 'put', write: 'put', events: eventsOf(before) };
}

export const eventOfAct = ({ now: time, ...by }: AuditContext, act: Act): DecidedEvent => ({
  ...act,
  ...actorIn(by),
  time,
});

export const deploymentEvent = (by: AuditContext, act: Act) => ({ studioId: OF_DEPLOYMENT, ...eventOfAct(by, act) });

export const creationEvent = ({ stage }: Pick<Lead, 'stage'>, by: AuditContext): DecidedEvent =>
  eventOfAct(by, { action: 'lead-created', to: stage });

export const restoreAct = ({ restoredTo }: { readonly restoredTo: Date }): Act => ({
  action: 'database-restored',
  to: restoredTo.toISOString(),
});

/** Decides about a new consumer, among those that there are. @returns `new`: it is to be stored, with the next number */
export function decideConsumer(
  consumers: readonly Consumer[],
  consumer: NewConsumer,
): CreateConsumerOutcome | { readonly kind: 'new'; readonly consumer: Omit<Consumer, 'number'> } {
  const namesake = consumers.find(({ name }) => name === consumer.name);
  if (namesake) {
    const whichOf = ({ start, studioIds, includesTests }: NewConsumer) => [start, studioIds, includesTests];
    const isSame = !namesake.fault && isDeepStrictEqual(whichOf(namesake), whichOf(consumer));
    return isSame ? { kind: 'created', consumer: namesake } : { kind: 'exists' };
  }
  if (consumers.length >= MAX_CONSUMERS) return { kind: 'limit-reached' };
  return { kind: 'new', consumer: { ...consumer, backfills: firstBackfills(consumer) } };
}

/** How long a call distributes changes at most, before it lists those that were; milliseconds. */
export const MAX_DISTRIBUTION_MS = 100;
