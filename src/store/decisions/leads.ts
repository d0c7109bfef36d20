import { type AuditContext, actorIn } from '../../domain/audit.ts';
import {
  type ContactKeys,
  contactKeys,
  isSameContact,
  MAX_FORMER_KEYS,
  type RegionCode,
} from '../../domain/contact.ts';
import { type StoredEnquiries, withEnquiry } from '../../domain/enquiry.ts';
import { type ErasedLead, isOpen, type Lead, type LeadStage, nextUpdate } from '../../domain/lead.ts';
import { addChange, type PendingChange } from '../../domain/lead-change.ts';
import { type Correction, correctedFields, type OriginalFields, readTexts } from '../../domain/lead-data.ts';
import { type Checked, readableOrThrow } from '../checked.ts';
import { UnreadableRecord } from '../port/faults.ts';
import type { ChangeLeadStageOutcome, LeadStageChange, LeadUpdate, UpdateLeadOutcome } from '../port/lead-changes.ts';
import type { EraseLeadOutcome, LeadErasure } from '../port/lead-erasure.ts';
import { type DecidedEvent, type Decision, eventOfAct } from './decision.ts';

export interface StoredLead {
  /** Null: it was erased. */
  readonly lead: Checked<Lead> | null;
  /** The parts of the lead that an erasure leaves. Before the erasure, its `erasedAt` is meaningless. */
  readonly remaining: Checked<ErasedLead>;
  /** Whether its original texts are stored. */
  readonly isCorrected: boolean;
  /** The readable keys that it holds or, once closed, is found by. */
  readonly contactKeys: readonly string[];
  /** The keys that it had before corrections of its contact. */
  readonly formerKeys: readonly string[];
  readonly pending: PendingChange;
}

interface ChangedFields extends Correction {
  readonly stage?: LeadStage;
  readonly updatedAt: Date;
}

export interface LeadWrite {
  readonly fields: ChangedFields;
  readonly pending: PendingChange;
  /** Replaces the lead's keys; absent: the lead keeps them. */
  readonly keys?: StoredKeys;
  /** Its original texts; absent: they are stored already, or not needed. */
  readonly original?: OriginalFields;
  /** Whether to delete all its personal data, and everything computed from it. */
  readonly isErasure?: boolean;
}

export interface StoredKeys extends ContactKeys {
  readonly formerKeys: readonly string[];
  /** Whether no other open lead may have the keys. Otherwise the lead is only found by them. */
  readonly isOpen: boolean;
}

/** The rule that computed a stored lead's keys. */
export interface KeyRule {
  readonly version: number;
  readonly region: RegionCode | null;
}

/** The version of the rule of this release. */
export const KEY_RULE = 3;

/** The version of release 1.2. Some of its keys are shared by different contacts. */
const KEY_RULE_OF_1_2 = 2;

/** Whether a key belongs to a lead's contact. Reads the lead only if needed. An unreadable lead keeps all its keys. */
export function isKeyOfContact(read: () => Checked<Lead> | null, rule: KeyRule | undefined, key: string): boolean {
  if (rule?.version !== KEY_RULE_OF_1_2) return true;
  const lead = read();
  return lead === null || lead instanceof UnreadableRecord || contactKeys(lead.contact, rule.region).includes(key);
}

type LeadDecision<Outcome> = Decision<Outcome, LeadWrite>;

export function decideLeadStage(
  found: StoredLead | null,
  { stage, keys, expectedUpdatedAt, now, ...by }: LeadStageChange,
  isApplied: boolean,
): LeadDecision<ChangeLeadStageOutcome> {
  const lead = found && readableOrThrow(found.lead);
  if (!lead) return { outcome: { kind: 'not-found' } };
  const { revision } = found.pending;
  if (isApplied) return { outcome: { kind: 'changed', lead, revision } };
  if (isStale(lead.updatedAt, expectedUpdatedAt)) return { outcome: { kind: 'stale' } };
  if (lead.stage === stage) return { outcome: { kind: 'unchanged', lead, revision }, write: null };
  const keepsKeys = isOpen(stage) === isOpen(lead.stage);
  if (!keepsKeys && !isSameContact(lead.contact, keys.contact)) return { outcome: { kind: 'other-contact' } };
  // A closed lead is found by the keys that it held, and by those that it would take now.
  const contactKeys = isOpen(stage) ? keys.contactKeys : [...new Set([...found.contactKeys, ...keys.contactKeys])];
  const { regionCode } = keys;
  // Former keys find the lead for others who shared them: their enquiries may be stored with it.
  const formerKeys = computeFormerKeys(found).filter((key) => !contactKeys.includes(key));
  const stored = { contactKeys, regionCode, isOpen: isOpen(stage), formerKeys };
  const updatedAt = nextUpdate(lead.updatedAt, now);
  const pending = addChange(found.pending, 'stage-changed', updatedAt);
  const [from, to] = [lead.stage, stage];
  return {
    outcome: { kind: 'changed', lead: { ...lead, stage, updatedAt }, revision: pending.revision },
    write: { fields: { stage, updatedAt }, pending, ...(!keepsKeys && { keys: stored }) },
    events: [{ action: 'lead-stage-changed', ...actorIn(by), time: updatedAt, from, to }],
  };
}

export function decideLeadUpdate(
  found: StoredLead | null,
  { correction, keys, expectedUpdatedAt, now, ...by }: LeadUpdate,
  isApplied: boolean,
): LeadDecision<UpdateLeadOutcome> {
  const lead = found && readableOrThrow(found.lead);
  if (!lead) return { outcome: { kind: 'not-found' } };
  const { revision } = found.pending;
  if (isApplied) return { outcome: { kind: 'changed', lead, revision } };
  if (isStale(lead.updatedAt, expectedUpdatedAt)) return { outcome: { kind: 'stale' } };
  const corrected = correctedFields(lead, correction);
  if (corrected.length === 0) return { outcome: { kind: 'unchanged', lead, revision }, write: null };
  const updatedAt = nextUpdate(lead.updatedAt, now);
  const formerKeys = computeFormerKeys(found);
  const pending = addChange(found.pending, 'updated', updatedAt);
  return {
    outcome: { kind: 'changed', lead: { ...lead, ...correction, updatedAt }, revision: pending.revision },
    write: {
      fields: { ...correction, updatedAt },
      pending,
      ...(corrected.includes('contact') && { keys: { ...keys, isOpen: isOpen(lead.stage), formerKeys } }),
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
  if (isStale(lead.updatedAt, expectedUpdatedAt)) return { outcome: { kind: 'stale' } };
  const updatedAt = nextUpdate(lead.updatedAt, now);
  return {
    outcome: { kind: 'erased', lead: { ...lead, updatedAt, erasedAt: updatedAt }, isNew: true },
    write: { fields: { updatedAt }, pending: addChange(found.pending, 'erased', updatedAt), isErasure: true },
    events: [{ action: 'lead-erased', ...actorIn(by), time: updatedAt }],
  };
}

const isStale = (updatedAt: Date, expected: Date | null | undefined): boolean =>
  Boolean(expected && expected.getTime() !== updatedAt.getTime());

/** A lead that prevented a creation, with its stored history. */
export interface EnquiredLead {
  readonly lead: Checked<Lead> | null;
  readonly pending: PendingChange;
  /** Its original texts; null: the same as now. */
  readonly original: Checked<OriginalFields> | null;
  readonly enquiries: StoredEnquiries;
}

export interface EnquiryWrite {
  readonly pending: PendingChange;
  /** Enquiries are stored with the original texts, because an erasure removes both. */
  readonly original: OriginalFields & { readonly enquiries: StoredEnquiries };
}

/**
 * Decides whether the data of a refused creation is stored with the open lead that prevented it. The lead's own fields
 * stay the same, including `updatedAt`.
 *
 * @returns null: nothing is written
 */
export function decideEnquiry(
  { lead, original, enquiries: before, pending }: EnquiredLead,
  { createdAt: time, contact, ...refused }: Lead,
  idempotencyKey: string,
): EnquiryWrite | null {
  // An unreadable lead cannot be compared, and its original texts must not be replaced.
  if (lead === null || lead instanceof UnreadableRecord || original instanceof UnreadableRecord) return null;
  const enquiries = isOpen(lead.stage)
    ? withEnquiry(lead, before, { time, contact, ...readTexts(refused) }, idempotencyKey)
    : null;
  return (
    enquiries && {
      pending: addChange(pending, 'enquired', time),
      original: { ...readTexts(original ?? lead), enquiries },
    }
  );
}

export const creationEvent = ({ stage }: Lead, by: AuditContext): DecidedEvent =>
  eventOfAct(by, { action: 'lead-created', to: stage });
