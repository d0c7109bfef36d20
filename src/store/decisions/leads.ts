import { isSameContact, MAX_FORMER_KEYS, type OpenClaims } from '../../domain/contact.ts';
import {
  type Correction,
  correctedFields,
  type ErasedLead,
  isOpen,
  type Lead,
  nextUpdate,
  type OriginalFields,
} from '../../domain/lead.ts';
import { type ChangeMark, marked } from '../../domain/lead-change.ts';
import { type Checked, readableOrThrow } from '../checked.ts';
import type {
  ChangeLeadStageOutcome,
  EraseLeadOutcome,
  LeadErasure,
  LeadStageChange,
  LeadUpdate,
  UpdateLeadOutcome,
} from '../store.ts';
import type { Decision } from './decision.ts';

/** A lead as it is stored. */
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

type LeadDecision<Outcome> = Decision<Outcome, LeadWrite>;

export function decideLeadStage(
  found: StoredLead | null,
  { stage, claims, memberId, caller, now }: LeadStageChange,
  isApplied: boolean,
): LeadDecision<ChangeLeadStageOutcome> {
  const lead = found && readableOrThrow(found.lead);
  if (!lead) return { outcome: { kind: 'not-found' } };
  if (isApplied) return { outcome: { kind: 'changed', lead } };
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
    events: [{ action: 'lead-stage-changed', memberId, caller, time: updatedAt, from, to }],
  };
}

export function decideLeadUpdate(
  found: StoredLead | null,
  { correction, claims, expectedUpdatedAt, memberId, caller, now }: LeadUpdate,
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
    events: [{ action: 'lead-updated', memberId, caller, time: updatedAt, to: corrected.join() }],
  };
}

export function decideLeadErasure(
  found: StoredLead | null,
  { memberId, caller, now, expectedUpdatedAt }: LeadErasure,
): LeadDecision<EraseLeadOutcome> {
  if (!found) return { outcome: { kind: 'not-found' } };
  const lead = readableOrThrow(found.remaining);
  if (found.lead === null) return { outcome: { kind: 'erased', lead } };
  if (isStale(lead, expectedUpdatedAt)) return { outcome: { kind: 'stale' } };
  const updatedAt = nextUpdate(lead.updatedAt, now);
  return {
    outcome: { kind: 'erased', lead: { ...lead, updatedAt, erasedAt: updatedAt } },
    write: { fields: { updatedAt }, mark: marked(found.mark, 'erased', updatedAt), isErasure: true },
    events: [{ action: 'lead-erased', memberId, caller, time: updatedAt }],
  };
}

const isStale = ({ updatedAt }: Pick<Lead, 'updatedAt'>, expected: Date | null | undefined): boolean =>
  Boolean(expected && expected.getTime() !== updatedAt.getTime());
