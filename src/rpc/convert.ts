import { create } from '@bufbuild/protobuf';
import { type Duration, type Timestamp, TimestampSchema, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { assert } from '../../common/invariants.ts';
import { uuidFault } from '../../common/rules/field-rules.ts';
import * as keys from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import * as audit from '../../proto/gen/leadintake/v1/audit_pb.ts';
import * as directory from '../../proto/gen/leadintake/v1/directory_pb.ts';
import * as leads from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { ApiKey, ApiKeyScope } from '../domain/api-key.ts';
import type { AuditAction, AuditEvent } from '../domain/audit.ts';
import type { Contact } from '../domain/contact.ts';
import type { ErasedLead, Lead, LeadStage, LeadView } from '../domain/lead.ts';
import type { ChangeKind, LeadChange } from '../domain/lead-change.ts';
import type { LeadSource, Member, MemberRole, Studio } from '../domain/studio.ts';
import type { Credential } from '../store/store.ts';

/**
 * Maps an enum between the domain and the wire. A wire value that is unspecified or unknown becomes undefined. An
 * unknown domain value throws, which fails only its own result; undefined would fail the whole message.
 */
function enumeration<Word extends string, Wire extends number>(wireOf: Record<Word, Wire>) {
  const wordOf = new Map(Object.entries<Wire>(wireOf).map(([word, wire]) => [wire as number, word as Word]));
  return {
    toWire(word: Word): Wire {
      const wire = Object.hasOwn(wireOf, word) ? wireOf[word] : undefined;
      assert(wire !== undefined, 'enum_on_wire');
      return wire;
    },
    fromWire: (wire: number): Word | undefined => wordOf.get(wire),
  };
}

export const leadStage = enumeration<LeadStage, leads.LeadStage>({
  new: leads.LeadStage.NEW,
  contacted: leads.LeadStage.CONTACTED,
  trial_booked: leads.LeadStage.TRIAL_BOOKED,
  trial_attended: leads.LeadStage.TRIAL_ATTENDED,
  won: leads.LeadStage.WON,
  lost: leads.LeadStage.LOST,
});

export const apiKeyScope = enumeration<ApiKeyScope, keys.ApiKeyScope>({
  'leads.read': keys.ApiKeyScope.LEADS_READ,
  'leads.create': keys.ApiKeyScope.LEADS_CREATE,
});

export const studioStatus = enumeration<Studio['status'], directory.StudioStatus>({
  active: directory.StudioStatus.ACTIVE,
  suspended: directory.StudioStatus.SUSPENDED,
});

export const memberRole = enumeration<MemberRole, directory.MemberRole>({
  owner: directory.MemberRole.OWNER,
  admin: directory.MemberRole.ADMIN,
  staff: directory.MemberRole.STAFF,
});

const changeKind = enumeration<ChangeKind, leads.LeadChangeKind>({
  created: leads.LeadChangeKind.CREATED,
  'stage-changed': leads.LeadChangeKind.STAGE_CHANGED,
  updated: leads.LeadChangeKind.UPDATED,
  resent: leads.LeadChangeKind.RESENT,
  erased: leads.LeadChangeKind.ERASED,
});

const auditAction = enumeration<AuditAction, audit.AuditAction>({
  'api-key-created': audit.AuditAction.API_KEY_CREATED,
  'api-key-replaced': audit.AuditAction.API_KEY_REPLACED,
  'api-key-revoked': audit.AuditAction.API_KEY_REVOKED,
  'api-key-quota-changed': audit.AuditAction.API_KEY_QUOTA_CHANGED,
  'studio-status-changed': audit.AuditAction.STUDIO_STATUS_CHANGED,
  'studio-quota-changed': audit.AuditAction.STUDIO_QUOTA_CHANGED,
  'studio-region-changed': audit.AuditAction.STUDIO_REGION_CHANGED,
  'studio-member-changed': audit.AuditAction.STUDIO_MEMBER_CHANGED,
  'lead-stage-changed': audit.AuditAction.LEAD_STAGE_CHANGED,
  'lead-updated': audit.AuditAction.LEAD_UPDATED,
  'lead-erased': audit.AuditAction.LEAD_ERASED,
});

export function contactFromWire(contact: leads.Contact | undefined): Contact | undefined {
  const value = contact?.value;
  return value?.case ? { type: value.case, value: value.value } : undefined;
}

/**
 * Returns the source that a creation names, if its id is valid; an invalid one is refused later, in the contract's
 * order.
 */
export function sourceIdFromWire(sourceId: string | undefined): string | undefined {
  return sourceId !== undefined && uuidFault(sourceId) === undefined ? sourceId.toLowerCase() : undefined;
}

/** Builds the message as a literal: `create` costs several times as much, and a page has many leads. */
export function leadToWire(lead: Lead, view: LeadView | undefined): leads.Lead {
  const { contact, sourceId, note } = lead;
  return {
    $typeName: leads.LeadSchema.typeName,
    id: lead.id,
    studioId: lead.studioId,
    displayName: lead.displayName,
    ...(view === 'full' && { contact: contactToWire(contact) }),
    ...(sourceId !== null && { sourceId }),
    ...(note !== null && { note }),
    stage: leadStage.toWire(lead.stage),
    createTime: timestampToWire(lead.createdAt),
    updateTime: timestampToWire(lead.updatedAt),
  };
}

export const erasedLeadToWire = ({ id, studioId, stage, createdAt, updatedAt, erasedAt }: ErasedLead): leads.Lead =>
  create(leads.LeadSchema, {
    id,
    studioId,
    stage: leadStage.toWire(stage),
    createTime: timestampToWire(createdAt),
    updateTime: timestampToWire(updatedAt),
    eraseTime: timestampToWire(erasedAt),
  });

/** Builds the message as a literal, as `leadToWire` does. */
export function leadChangeToWire({ lead, revision, since, kinds }: LeadChange): leads.LeadChange {
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
  };
}

function contactToWire({ type, value }: Contact): leads.Contact {
  return { $typeName: leads.ContactSchema.typeName, value: { case: type, value } };
}

function timestampToWire(date: Date): Timestamp {
  const ms = date.getTime();
  const seconds = Math.floor(ms / 1000);
  return { $typeName: TimestampSchema.typeName, seconds: BigInt(seconds), nanos: (ms - seconds * 1000) * 1e6 };
}

export function apiKeyToWire(key: ApiKey): keys.ApiKey {
  return create(keys.ApiKeySchema, {
    id: key.id,
    studioId: key.studioId,
    memberId: key.memberId,
    name: key.name,
    scopes: key.scopes.map(apiKeyScope.toWire),
    createTime: timestampFromDate(key.createdAt),
    expireTime: timestampFromDate(key.expiresAt),
    ...(key.revokedAt && { revokeTime: timestampFromDate(key.revokedAt) }),
    secretHint: key.secretHint,
    ...(key.lastUsedAt && { lastUsedTime: timestampFromDate(key.lastUsedAt) }),
    ...(key.quotaLimit !== null && { quotaLimit: key.quotaLimit }),
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

export function studioToWire({ id, status, regionCode, quotaLimit }: Studio): directory.Studio {
  return create(directory.StudioSchema, {
    id,
    status: studioStatus.toWire(status),
    ...(regionCode !== null && { regionCode }),
    ...(quotaLimit !== null && { quotaLimit }),
  });
}

export function memberToWire({ studioId, id, role }: Member): directory.Member {
  return create(directory.MemberSchema, { studioId, id, role: memberRole.toWire(role) });
}

export function leadSourceToWire(source: LeadSource): directory.LeadSource {
  return create(directory.LeadSourceSchema, source);
}

export function auditEventToWire(event: AuditEvent): audit.AuditEvent {
  const { memberId, caller, apiKeyId, leadId, from, to } = event;
  return create(audit.AuditEventSchema, {
    studioId: event.studioId,
    action: auditAction.toWire(event.action),
    time: timestampFromDate(event.time),
    ...(memberId !== null && { memberId }),
    ...(caller !== null && { caller }),
    ...(apiKeyId !== null && { apiKeyId }),
    ...(leadId !== null && { leadId }),
    ...(from !== null && { from }),
    ...(to !== null && { to }),
  });
}

/** The last second of the year 9999, the end of the range of a Timestamp. */
const MAX_SECONDS = 253_402_300_799n;

const isNanos = (nanos: number) => nanos >= 0 && nanos <= 999_999_999;

/** Returns whole milliseconds, never later than given; an invalid Date before 1970 and outside the range of the message. */
export function dateFromWire(time: Timestamp | undefined): Date | undefined {
  if (!time) return undefined;
  const { seconds, nanos } = time;
  const isTime = seconds >= 0n && seconds <= MAX_SECONDS && isNanos(nanos);
  return new Date(isTime ? Number(seconds) * 1000 + Math.floor(nanos / 1e6) : Number.NaN);
}

/** Returns whole milliseconds, never more than given; 0 if absent, NaN if negative or outside the range of the message. */
export function durationMsFromWire(duration: Duration | undefined): number {
  if (!duration) return 0;
  const { seconds, nanos } = duration;
  return seconds >= 0n && isNanos(nanos) ? Number(seconds) * 1000 + Math.floor(nanos / 1e6) : Number.NaN;
}
