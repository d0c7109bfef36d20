import { type AuditContext, actorIn } from '../../domain/audit.ts';
import { contactKeys, isSameContact, MAX_FORMER_KEYS, type OpenClaims, type RegionCode } from '../../domain/contact.ts';
import { type KeptEnquiries, withEnquiry } from '../../domain/enquiry.ts';
import { type ErasedLead, isOpen, type Lead, nextUpdate } from '../../domain/lead.ts';
import { type ChangeMark, marked } from '../../domain/lead-change.ts';
import { type Correction, correctedFields, type OriginalFields, readTexts } from '../../domain/lead-data.ts';
import { type Checked, readableOrThrow } from '../checked.ts';
import { UnreadableRecord } from '../port/faults.ts';
import type { ChangeLeadStageOutcome, LeadStageChange, LeadUpdate, UpdateLeadOutcome } from '../port/lead-changes.ts';
import type { EraseLeadOutcome, LeadErasure } from '../port/lead-erasure.ts';
import { type DecidedEvent, type Decision, eventOfAct } from './decision.ts';

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

/** The rule by which a stored lead has its keys. */
export interface KeyRule {
  readonly version: number;
  readonly region: RegionCode | null;
}

/** The version of the rule of this release. */
export const KEY_RULE = 3;

/** The version of release 1.2, whose keys include some by which different contacts met. */
const KEY_RULE_OF_1_2 = 2;

/** Returns whether a lead, which is read if need be, claims a key rightly. One that cannot be read keeps all that it claims. */
export function hasKey(read: () => Checked<Lead> | null, rule: KeyRule | undefined, key: string): boolean {
  if (rule?.version !== KEY_RULE_OF_1_2) return true;
  const lead = read();
  return lead === null || lead instanceof UnreadableRecord || contactKeys(lead.contact, rule.region).includes(key);
}

type LeadDecision<Outcome> = Decision<Outcome, LeadWrite>;

export function decideLeadStage(
  found: StoredLead | null,
  { stage, claims, expectedUpdatedAt, now, ...by }: LeadStageChange,
  isApplied: boolean,
): LeadDecision<ChangeLeadStageOutcome> {
  const lead = found && readableOrThrow(found.lead);
  if (!lead) return { outcome: { kind: 'not-found' } };
  const { revision } = found.mark;
  if (isApplied) return { outcome: { kind: 'changed', lead, revision } };
  if (isStale(lead, expectedUpdatedAt)) return { outcome: { kind: 'stale' } };
  if (lead.stage === stage) return { outcome: { kind: 'unchanged', lead, revision }, write: null };
  const keepsClaims = isOpen(stage) === isOpen(lead.stage);
  if (!keepsClaims && !isSameContact(lead.contact, claims.contact)) return { outcome: { kind: 'other-contact' } };
  // A closed lead is found by what it had claimed, and by what it would claim now.
  const contactKeys = isOpen(stage) ? claims.contactKeys : [...new Set([...found.contactKeys, ...claims.contactKeys])];
  const { regionCode } = claims;
  // By what it had claimed, whoever shares only that with it is found: an enquiry of theirs may be at the lead.
  const formerKeys = computeFormerKeys(found).filter((key) => !contactKeys.includes(key));
  const claimed = { contactKeys, regionCode, isOpen: isOpen(stage), formerKeys };
  const updatedAt = nextUpdate(lead.updatedAt, now);
  const mark = marked(found.mark, 'stage-changed', updatedAt);
  const [from, to] = [lead.stage, stage];
  return {
    outcome: { kind: 'changed', lead: { ...lead, stage, updatedAt }, revision: mark.revision },
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
  const { revision } = found.mark;
  if (isApplied) return { outcome: { kind: 'updated', lead, revision } };
  if (isStale(lead, expectedUpdatedAt)) return { outcome: { kind: 'stale' } };
  const corrected = correctedFields(lead, correction);
  if (corrected.length === 0) return { outcome: { kind: 'unchanged', lead, revision }, write: null };
  const updatedAt = nextUpdate(lead.updatedAt, now);
  const formerKeys = computeFormerKeys(found);
  const mark = marked(found.mark, 'updated', updatedAt);
  return {
    outcome: { kind: 'updated', lead: { ...lead, ...correction, updatedAt }, revision: mark.revision },
    write: {
      fields: { ...correction, updatedAt },
      mark,
      ...(corrected.includes('contact') && { claims: { ...claims, isOpen: isOpen(lead.stage), formerKeys } }),
      ...(!found.isCorrected && { original: lead }),
    },
    events: [{ action: 'lead-updated', ...actorIn(by), time: updatedAt, to: corrected.join() }],
  };
}

const computeFormerKeys = ({ formerKeys, contactKeys }: StoredLead): string[] =>
  [...new Set([...formerKeys, ...contactKeys])].slice(0, MAX_FORMER_KEYS);

export function decideLeadErasure(
  found: StoredLead | null,
  { now, expectedUpdatedAt, ...by }: LeadErasure,
  isApplied: boolean,
): LeadDecision<EraseLeadOutcome> {
  if (!found) return { outcome: { kind: 'not-found' } };
  const lead = readableOrThrow(found.remaining);
  if (found.lead === null) return { outcome: { kind: 'erased', lead, isNew: isApplied } };
  if (isStale(lead, expectedUpdatedAt)) return { outcome: { kind: 'stale' } };
  const updatedAt = nextUpdate(lead.updatedAt, now);
  return {
    outcome: { kind: 'erased', lead: { ...lead, updatedAt, erasedAt: updatedAt }, isNew: true },
    write: { fields: { updatedAt }, mark: marked(found.mark, 'erased', updatedAt), isErasure: true },
    events: [{ action: 'lead-erased', ...actorIn(by), time: updatedAt }],
  };
}

const isStale = ({ updatedAt }: Pick<Lead, 'updatedAt'>, expected: Date | null | undefined): boolean =>
  Boolean(expected && expected.getTime() !== updatedAt.getTime());

/** A lead because of which a creation is refused, with what is stored of its past. */
export interface EnquiredLead extends Pick<StoredLead, 'lead' | 'mark'> {
  /** What it was created with; null: as it is now. */
  readonly original: Checked<OriginalFields> | null;
  readonly enquiries: KeptEnquiries;
}

export interface EnquiryWrite {
  readonly mark: ChangeMark;
  /** Its enquiries are stored with what it was created with, because an erasure removes both. */
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
  { createdAt: time, contact, ...refused }: Lead,
  idempotencyKey: string,
): EnquiryWrite | null {
  // With a lead that cannot be read nothing can be compared, and what it was created with must not be replaced.
  if (lead === null || lead instanceof UnreadableRecord || original instanceof UnreadableRecord) return null;
  const enquiries = isOpen(lead.stage)
    ? withEnquiry(lead, before, { time, contact, ...readTexts(refused) }, idempotencyKey)
    : null;
  return enquiries && { mark: marked(mark, 'enquired', time), original: { ...readTexts(original ?? lead), enquiries } };
}

export const creationEvent = ({ stage }: Pick<Lead, 'stage'>, by: AuditContext): DecidedEvent =>
  eventOfAct(by, { action: 'lead-created', to: stage });
