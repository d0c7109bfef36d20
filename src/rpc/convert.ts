import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { type Duration, type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { assert } from '../../common/invariants.ts';
import { uuidFault } from '../../common/rules/field-rules.ts';
import * as keys from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import * as audit from '../../proto/gen/leadintake/v1/audit_pb.ts';
import * as consumers from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import * as directory from '../../proto/gen/leadintake/v1/directory_pb.ts';
import * as leads from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { API_KEY_SCOPES, type ApiKey } from '../domain/api-key.ts';
import { AUDIT_ACTIONS, type AuditEvent } from '../domain/audit.ts';
import { CONSUMER_STARTS, type Consumer } from '../domain/consumer.ts';
import type { Contact } from '../domain/contact.ts';
import type { DatabaseEpoch } from '../domain/database-epoch.ts';
import type { EnquiryWithId } from '../domain/enquiry.ts';
import { type ErasedLead, LEAD_STAGES, type Lead, type LeadStage, type LeadView } from '../domain/lead.ts';
import { CHANGE_KINDS, type LeadChange, type LeadSetAside, type SetAside } from '../domain/lead-change.ts';
import {
  type GivenLeadData,
  type GivenTexts,
  type OriginalFields,
  readTexts,
  TEXT_FIELDS,
} from '../domain/lead-data.ts';
import type { GivenLeadFilter, TimeRange } from '../domain/lead-filter.ts';
import { type LeadSource, MEMBER_ROLES, type Member, STUDIO_STATUSES, type Studio } from '../domain/studio.ts';
import type { Credential } from '../store/port/api-keys.ts';
import type { MeasuredDeliveries, WaitingChanges } from '../store/port/deliveries.ts';
import type { LeadState } from '../store/port/lead-changes.ts';
import type { LeadRecord } from '../store/port/lead-reads.ts';
import { MAX_COUNTED } from '../usecases/consumers.ts';
import type { LeadCounts } from '../usecases/count-leads.ts';
import type { LeadEvent } from '../usecases/lead-events.ts';

/** A word's name on the wire: `stage-changed` becomes STAGE_CHANGED, `leads.read` becomes LEADS_READ. */
type WireName<Word extends string> = Word extends `${infer Head}${'-' | '.'}${infer Tail}`
  ? `${Uppercase<Head>}_${WireName<Tail>}`
  : Uppercase<Word>;

/**
 * Maps the words of the domain to an enum of the wire, and back. Unspecified and unknown wire values become undefined.
 * An unknown word throws, which fails only its own result; undefined would fail the whole message.
 */
function enumeration<Word extends string, Wires extends Readonly<Record<WireName<Word>, number>>>(
  words: readonly Word[],
  wire: Wires,
) {
  type Wire = Wires[WireName<Word>];
  const pairs = words.map((word) => [word, wire[word.toUpperCase().replace(/[-.]/g, '_') as WireName<Word>]] as const);
  const wireByWord = new Map<Word, Wire>(pairs);
  const wordByWire = new Map<number, Word>(pairs.map(([word, number]) => [number, word]));
  return {
    toWire(word: Word): Wire {
      const number = wireByWord.get(word);
      assert(number !== undefined, 'enum_on_wire');
      return number;
    },
    fromWire: (number: number): Word | undefined => wordByWire.get(number),
  };
}

export const leadStage = enumeration(LEAD_STAGES, leads.LeadStage);
export const apiKeyScope = enumeration(API_KEY_SCOPES, keys.ApiKeyScope);
export const studioStatus = enumeration(STUDIO_STATUSES, directory.StudioStatus);
export const memberRole = enumeration(MEMBER_ROLES, directory.MemberRole);
export const consumerStart = enumeration(CONSUMER_STARTS, consumers.ConsumerStart);
const changeKind = enumeration(CHANGE_KINDS, leads.LeadChangeKind);
const auditAction = enumeration(AUDIT_ACTIONS, audit.AuditAction);

export function contactFromWire(contact: leads.Contact | undefined): Contact | undefined {
  const value = contact?.value;
  return value?.case ? { type: value.case, value: value.value } : undefined;
}

/** The lead data of a message. */
interface WireLeadData extends GivenTexts {
  readonly contact?: leads.Contact | undefined;
}

export const leadDataFromWire = (data: WireLeadData): GivenLeadData => ({
  ...readTexts(data),
  contact: contactFromWire(data.contact),
});

/** A record in the form of messages, which omit null fields. */
type WithoutNulls<Record> = {
  [Field in keyof Record]: null extends Record[Field] ? Exclude<Record[Field], null> | undefined : Record[Field];
};

const withoutNulls = <Record extends object>(record: Record) =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null)) as WithoutNulls<Record>;

/** Returns the source of a creation if its id is valid. An invalid one is refused later, in the contract's order. */
export function sourceIdFromWire(sourceId: string | undefined): string | undefined {
  return sourceId !== undefined && uuidFault(sourceId) === undefined ? sourceId.toLowerCase() : undefined;
}

/** Sets the texts of a new message, and returns it. */
function withTexts<Message extends leads.Lead | leads.Enquiry>(texts: OriginalFields, message: Message): Message {
  const written: leads.Lead | leads.Enquiry = message;
  for (const field of TEXT_FIELDS) {
    const text = texts[field];
    if (text !== null) written[field] = text;
  }
  return message;
}

/** Builds the message as a literal, because `create` costs several times as much, and a page has many leads. */
export function leadToWire(lead: Lead, view: LeadView | undefined): leads.Lead {
  return withTexts<leads.Lead>(lead, {
    $typeName: leads.LeadSchema.typeName,
    id: lead.id,
    studioId: lead.studioId,
    displayName: lead.displayName,
    ...(view === 'full' && { contact: contactToWire(lead.contact) }),
    stage: leadStage.toWire(lead.stage),
    createTime: timestampToWire(lead.createdAt),
    updateTime: timestampToWire(lead.updatedAt),
    enquiries: view === 'full' && lead.enquiries ? lead.enquiries.map(enquiryToWire) : [],
    ...(lead.apiKeyId && { apiKeyId: lead.apiKeyId }),
  });
}

export const leadStateToWire = ({ lead, revision }: LeadState) => ({
  lead: leadToWire(lead, 'full'),
  revision: BigInt(revision),
});

export const leadRecordToWire = ({ lead, idempotencyKey, original }: LeadRecord) => ({
  lead: leadToWire(lead, 'full'),
  idempotencyKey,
  ...(original && { createdWith: withoutNulls(original) }),
});

const enquiryToWire = ({ id, time, contact, ...texts }: EnquiryWithId): leads.Enquiry =>
  withTexts<leads.Enquiry>(texts, {
    $typeName: leads.EnquirySchema.typeName,
    id,
    time: timestampToWire(time),
    displayName: texts.displayName,
    ...(contact && { contact: contactToWire(contact) }),
  });

export const erasedLeadToWire = ({ id, studioId, stage, createdAt, updatedAt, erasedAt }: ErasedLead): leads.Lead =>
  create(leads.LeadSchema, {
    id,
    studioId,
    stage: leadStage.toWire(stage),
    createTime: timestampToWire(createdAt),
    updateTime: timestampToWire(updatedAt),
    eraseTime: timestampToWire(erasedAt),
  });

export const leadEventToWire = ({ time, what, ...by }: LeadEvent): leads.LeadEvent =>
  create(leads.LeadEventSchema, { ...withoutNulls(by), time: timestampToWire(time), what: whatToWire(what) });

function whatToWire(what: LeadEvent['what']): NonNullable<MessageInitShape<typeof leads.LeadEventSchema>['what']> {
  const toStage = (stage: LeadStage | null) => (stage === null ? leads.LeadStage.UNSPECIFIED : leadStage.toWire(stage));
  switch (what.kind) {
    case 'stage-move':
      return { case: 'stageMove', value: { from: toStage(what.from), to: toStage(what.to) } };
    case 'correction':
      return { case: 'correction', value: { fields: what.fields.map((field) => leads.LeadSchema.field[field].name) } };
    case 'erasure':
      return { case: 'erasure', value: {} };
    case 'enquiry':
      return { case: 'enquiry', value: what.sourceId === null ? {} : { sourceId: what.sourceId } };
  }
}

export const countsToWire = ({ byStage, bySource, completeSince }: LeadCounts): leads.CountLeadsResponse =>
  create(leads.CountLeadsResponseSchema, {
    byStage: byStage.map(({ of, ...count }) => ({ stage: leadStage.toWire(of), ...count })),
    bySource: bySource.map(({ of, ...count }) => ({ ...(of !== null && { sourceId: of }), ...count })),
    ...(completeSince && { completeSince: timestampToWire(completeSince) }),
  });

export const epochToWire = ({ epoch, restoredTo }: DatabaseEpoch) => ({
  databaseEpoch: BigInt(epoch),
  ...(restoredTo && { restoredToTime: timestampToWire(restoredTo) }),
});

/** Builds the message as a literal, as `leadToWire` does. */
export function leadChangeToWire({ lead, revision, since, kinds, attempts }: LeadChange): leads.LeadChange {
  return {
    $typeName: leads.LeadChangeSchema.typeName,
    lead: 'erasedAt' in lead ? erasedLeadToWire(lead) : leadToWire(lead, 'full'),
    revision: BigInt(revision),
    firstChangeTime: timestampToWire(since),
    kinds: kinds.map(({ kind, time }) => ({
      $typeName: leads.LeadChangeOfKindSchema.typeName,
      kind: changeKind.toWire(kind),
      time: timestampToWire(time),
    })),
    attempts,
  };
}

function contactToWire({ type, value }: Contact): leads.Contact {
  return { $typeName: leads.ContactSchema.typeName, value: { case: type, value } };
}

export function timestampToWire(date: Date): Timestamp {
  const ms = date.getTime();
  const seconds = Math.floor(ms / 1000);
  return { $typeName: TimestampSchema.typeName, seconds: BigInt(seconds), nanos: (ms - seconds * 1000) * 1e6 };
}

/** @param measured what the consumer has to handle; absent: not counted */
export const consumerToWire = (consumer: Consumer, measured?: MeasuredDeliveries): consumers.Consumer =>
  create(consumers.ConsumerSchema, {
    name: consumer.name,
    studioIds: [...(consumer.studioIds ?? [])],
    allStudios: consumer.studioIds === null && !consumer.fault,
    includeTestStudios: consumer.includesTests && !consumer.fault,
    createTime: timestampToWire(consumer.createdAt),
    ...(measured && {
      waiting: waitingToWire(measured.waiting, measured.isComplete),
      setAside: waitingToWire(measured.setAside),
    }),
    isBackfilling: consumer.backfills.length > 0,
  });

const waitingToWire = ({ leads, since }: WaitingChanges, isComplete = true) => ({
  leadCount: leads,
  isLowerBound: leads >= MAX_COUNTED || !isComplete,
  ...(since && { oldestTime: timestampToWire(since) }),
});

export function setAsideFromWire(aside: consumers.LeadSetAside): SetAside {
  const { studioId, leadId, revision, reason, retryTime } = aside;
  return { studioId, leadId, revision: Number(revision), reason, retryAt: dateFromWire(retryTime) ?? null };
}

export const setAsideToWire = ({ due: _, retryAt, revision, ...lead }: LeadSetAside): consumers.LeadSetAside =>
  create(consumers.LeadSetAsideSchema, {
    ...lead,
    revision: BigInt(revision),
    ...(retryAt && { retryTime: timestampToWire(retryAt) }),
  });

export function apiKeyToWire({ secretSha256: _, scopes, createdAt, expiresAt, ...key }: ApiKey): keys.ApiKey {
  const { revokedAt, lastUsedAt, ...others } = key;
  return create(keys.ApiKeySchema, {
    ...withoutNulls(others),
    scopes: scopes.map(apiKeyScope.toWire),
    createTime: timestampToWire(createdAt),
    expireTime: timestampToWire(expiresAt),
    ...(revokedAt && { revokeTime: timestampToWire(revokedAt) }),
    ...(lastUsedAt && { lastUsedTime: timestampToWire(lastUsedAt) }),
  });
}

export function bearerToWire({ key, studio }: Credential): keys.AuthenticateApiKeyResponse {
  return create(keys.AuthenticateApiKeyResponseSchema, {
    studioId: key.studioId,
    apiKeyId: key.id,
    scopes: key.scopes.map(apiKeyScope.toWire),
    ...(key.quotaLimit !== null && { keyQuotaLimit: key.quotaLimit }),
    ...(studio.quotaLimit !== null && { studioQuotaLimit: studio.quotaLimit }),
  });
}

export function studioToWire({ status, retention, formerRegions: _, ...studio }: Studio): directory.Studio {
  return create(directory.StudioSchema, {
    ...withoutNulls(studio),
    status: studioStatus.toWire(status),
    retentionDays: retention?.days,
  });
}

export function memberToWire({ studioId, id, role }: Member): directory.Member {
  return create(directory.MemberSchema, { studioId, id, role: memberRole.toWire(role) });
}

export function leadSourceToWire(source: LeadSource): directory.LeadSource {
  return create(directory.LeadSourceSchema, source);
}

export function auditEventToWire({ action, time, ...event }: AuditEvent): audit.AuditEvent {
  const fields = { action: auditAction.toWire(action), time: timestampToWire(time) };
  return create(audit.AuditEventSchema, { ...withoutNulls(event), ...fields });
}

/** The range of a Timestamp: the first second of the year 1, and the last one of 9999. */
const MIN_SECONDS = -62_135_596_800n;
const MAX_SECONDS = 253_402_300_799n;

const isNanos = (nanos: number) => nanos >= 0 && nanos <= 999_999_999;

/** Returns whole milliseconds; an invalid Date before the second `first`, or after the range. */
const toDate = ({ seconds, nanos }: Timestamp, first: bigint, round: (ms: number) => number): Date =>
  seconds >= first && seconds <= MAX_SECONDS && isNanos(nanos)
    ? new Date(Number(seconds) * 1000 + round(nanos / 1e6))
    : new Date(Number.NaN);

/** Returns whole milliseconds, rounded down; an invalid Date before 1970 or outside the message's range. */
export const dateFromWire = (time: Timestamp | undefined): Date | undefined => time && toDate(time, 0n, Math.floor);

export const filterFromWire = (filter: leads.LeadFilter | undefined): GivenLeadFilter | undefined =>
  filter && {
    stages: filter.stages.map(leadStage.fromWire),
    sourceIds: filter.sourceIds,
    apiKeyIds: filter.apiKeyIds,
    created: rangeFromWire(filter.createTime),
    updated: rangeFromWire(filter.updateTime),
  };

export function rangeFromWire({ startTime, endTime }: Partial<leads.TimeRange> = {}): TimeRange {
  const [start, end] = [boundFromWire(startTime), boundFromWire(endTime)];
  // Rounding to milliseconds must not hide that a range ends before it starts.
  const isReversed = startTime && endTime && toNanos(startTime) > toNanos(endTime);
  return { start, end: isReversed && end ? new Date(end.getTime() - 1) : end };
}

const toNanos = ({ seconds, nanos }: Timestamp): bigint => seconds * 1_000_000_000n + BigInt(nanos);

/** Returns whole milliseconds, rounded up, because stored times are whole; an invalid Date outside the message's range. */
const boundFromWire = (time: Timestamp | undefined): Date | null =>
  time ? toDate(time, MIN_SECONDS, Math.ceil) : null;

/** Returns whole milliseconds, rounded down; 0 if absent, NaN if negative or outside the message's range. */
export function durationMsFromWire(duration: Duration | undefined): number {
  if (!duration) return 0;
  const { seconds, nanos } = duration;
  return seconds >= 0n && isNanos(nanos) ? Number(seconds) * 1000 + Math.floor(nanos / 1e6) : Number.NaN;
}
