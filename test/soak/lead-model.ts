import { isDeepStrictEqual } from 'node:util';
import type { Correction, Lead, LeadStage } from '../../src/domain/lead.ts';
import type { RefusalReason } from '../../src/domain/refusal.ts';
import type { CreateLeadCommand } from '../../src/usecases/create-lead.ts';

/** A lead, and the data that only its creation reports. */
export interface KnownLead extends Lead {
  readonly command: CreateLeadCommand;
  /** The index of its contact, in whichever spelling. */
  readonly person: number;
}

/** The minimal state of a service. */
export type Model = readonly KnownLead[];

/** A request as it was sent. */
export type Request =
  | { readonly kind: 'create'; readonly command: CreateLeadCommand; readonly person: number }
  | {
      readonly kind: 'move';
      readonly studioId: string;
      readonly leadId: string;
      readonly stage: LeadStage;
      readonly now: Date;
    }
  | {
      readonly kind: 'correct';
      readonly studioId: string;
      readonly leadId: string;
      readonly correction: Correction;
      /** The index of its new contact; undefined: a contact that no other lead has. */
      readonly person: number | undefined;
      readonly expectedUpdatedAt: Date | undefined;
      readonly now: Date;
    }
  | { readonly kind: 'get'; readonly studioId: string; readonly leadId: string }
  | {
      readonly kind: 'list';
      readonly studioId: string;
      readonly pageSize: number;
      /** Where the page begins, and the studio whose token is sent. */
      readonly after: { readonly studioId: string; readonly leadId: string } | undefined;
    };

/** The outcome of a request. */
export type Outcome =
  | { readonly lead: Lead; readonly replayed?: boolean }
  | { readonly leads: readonly Lead[]; readonly hasMore: boolean }
  | { readonly refused: RefusalReason; readonly leadId?: string };

/** Returns the model after a request with this outcome; undefined when the outcome contradicts the model. */
export function explained(model: Model, request: Request, outcome: Outcome): Model | undefined {
  switch (request.kind) {
    case 'create':
      return explainedCreation(model, request, outcome);
    case 'move':
      return explainedMove(model, request, outcome);
    case 'correct':
      return explainedCorrection(model, request, outcome);
    case 'get': {
      const found = model.find(({ studioId, id }) => studioId === request.studioId && id === request.leadId);
      return is(outcome, found ? { lead: leadOf(found) } : { refused: 'LEAD_NOT_FOUND' }) ? model : undefined;
    }
    case 'list':
      return is(outcome, pageOf(model, request)) ? model : undefined;
  }
}

function explainedCreation(
  model: Model,
  { command, person }: Extract<Request, { kind: 'create' }>,
  outcome: Outcome,
): Model | undefined {
  const own = model.filter(({ studioId }) => studioId === command.studioId);
  const earlier = own.find((each) => each.command.idempotencyKey === command.idempotencyKey);
  const holder = own.find((each) => each.person === person && isOpen(each.stage));
  if (earlier && isDeepStrictEqual(earlier.command, command)) {
    const { displayName, note = null } = command;
    // No response includes the contact, which is the current one.
    const original = { ...leadOf(earlier), displayName, note, stage: 'new', updatedAt: earlier.createdAt } as const;
    return is(outcome, { lead: original, replayed: true }) ? model : undefined;
  }
  if (earlier) return is(outcome, { refused: 'IDEMPOTENCY_CONFLICT' }) ? model : undefined;
  if (holder) return is(outcome, { refused: 'LEAD_ALREADY_OPEN', leadId: holder.id }) ? model : undefined;

  if (!('lead' in outcome) || model.some(({ id }) => id === outcome.lead.id)) return undefined;
  const { id, createdAt } = outcome.lead;
  const { studioId, displayName, contact, note } = command;
  const lead = { id, studioId, displayName, contact, sourceId: null, note: note ?? null } as Lead;
  const created: Lead = { ...lead, stage: 'new', createdAt, updatedAt: createdAt };
  return is(outcome, { lead: created, replayed: false }) ? [...model, { ...created, command, person }] : undefined;
}

function explainedMove(
  model: Model,
  { studioId, leadId, stage, now }: Extract<Request, { kind: 'move' }>,
  outcome: Outcome,
): Model | undefined {
  const lead = model.find((each) => each.studioId === studioId && each.id === leadId);
  if (!lead) return is(outcome, { refused: 'LEAD_NOT_FOUND' }) ? model : undefined;
  const holder = model.find(
    (each) => each !== lead && each.studioId === studioId && each.person === lead.person && isOpen(each.stage),
  );
  if (stage !== lead.stage && isOpen(stage) && !isOpen(lead.stage) && holder) {
    return is(outcome, { refused: 'LEAD_ALREADY_OPEN', leadId: holder.id }) ? model : undefined;
  }
  const moved = stage === lead.stage ? lead : { ...lead, stage, updatedAt: after(lead.updatedAt, now) };
  return is(outcome, { lead: leadOf(moved) }) ? model.map((each) => (each === lead ? moved : each)) : undefined;
}

function explainedCorrection(
  model: Model,
  { studioId, leadId, correction, person, expectedUpdatedAt, now }: Extract<Request, { kind: 'correct' }>,
  outcome: Outcome,
): Model | undefined {
  const lead = model.find((each) => each.studioId === studioId && each.id === leadId);
  if (!lead) return is(outcome, { refused: 'LEAD_NOT_FOUND' }) ? model : undefined;
  if (expectedUpdatedAt && expectedUpdatedAt.getTime() !== lead.updatedAt.getTime()) {
    return is(outcome, { refused: 'UPDATE_TIME_MISMATCH' }) ? model : undefined;
  }
  const holder = model.find(
    (each) => each !== lead && each.studioId === studioId && each.person === person && isOpen(each.stage),
  );
  const otherContact = !isDeepStrictEqual(correction.contact ?? lead.contact, lead.contact);
  if (otherContact && isOpen(lead.stage) && holder) {
    return is(outcome, { refused: 'LEAD_ALREADY_OPEN', leadId: holder.id }) ? model : undefined;
  }
  const wanted = { ...lead, ...correction, person: person ?? lead.person };
  const corrected = isDeepStrictEqual(wanted, lead) ? lead : { ...wanted, updatedAt: after(lead.updatedAt, now) };
  return is(outcome, { lead: leadOf(corrected) }) ? model.map((each) => (each === lead ? corrected : each)) : undefined;
}

function pageOf(model: Model, { studioId, pageSize, after }: Extract<Request, { kind: 'list' }>): Outcome {
  if (after && after.studioId !== studioId) return { refused: 'INVALID_REQUEST' };
  const following = model
    .filter((each) => each.studioId === studioId && (!after || each.id < after.leadId))
    .toSorted((a, b) => (a.id < b.id ? 1 : -1));
  return { leads: following.slice(0, pageSize).map(leadOf), hasMore: following.length > pageSize };
}

const after = (before: Date, now: Date): Date => (now > before ? now : new Date(before.getTime() + 1));

/** Duplicated on purpose, so that a bug in the domain's own rule shows. */
const isOpen = (stage: LeadStage): boolean => !['won', 'lost'].includes(stage);

const leadOf = ({ command, person, ...lead }: KnownLead): Lead => lead;

const is = (outcome: Outcome, expected: Outcome): boolean => isDeepStrictEqual(outcome, expected);
