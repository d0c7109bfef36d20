import { Binary, UUID } from 'mongodb';
import type { ApiKey, ApiKeyScope } from '../../domain/api-key.ts';
import type { AuditEvent } from '../../domain/audit.ts';
import type { Contact, RegionCode } from '../../domain/contact.ts';
import type { Fingerprint } from '../../domain/idempotency.ts';
import { type Lead, type LeadClaims, type LeadStage, openClaim } from '../../domain/lead.ts';
import type { LeadSource, MemberRole, Studio } from '../../domain/studio.ts';

/**
 * A lead's id, after its studio's: what every collection is ordered by keeps a studio's leads together, in the order of
 * the listing. To the database it is one value, so the fields' order is part of it.
 */
export interface LeadKey {
  readonly studioId: string;
  readonly id: UUID;
}

/** What was done to a document, in the order in which it was done. */
export interface HistoryEntry extends Pick<AuditEvent, 'action' | 'memberId' | 'time'> {
  readonly from?: string | null;
  readonly to?: string;
}

/** A lead with its claims: all that decides about it is in the one document that is written. */
export interface LeadDocument {
  readonly _id: LeadKey;
  readonly studioId: string;
  readonly displayName: string;
  readonly contact: Contact;
  readonly sourceId: UUID | null;
  readonly note: string | null;
  readonly stage: LeadStage;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** The contact while the lead is open, its own id once it is closed. */
  readonly openContactKey: string;
  readonly idempotency: { readonly key: UUID; readonly fingerprint: string; readonly fingerprintVersion: number };
  /** Absent until it is moved. */
  readonly history?: readonly HistoryEntry[];
}

/** A key; `slot` is one of its studio's slots while it is live, its own id otherwise. */
export interface ApiKeyDocument {
  readonly _id: UUID;
  readonly studioId: string;
  readonly memberId: string;
  readonly name: string;
  readonly scopes: readonly ApiKeyScope[];
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly revokedAt: Date | null;
  readonly secretSha256: Binary;
  readonly secretHint: string;
  readonly slot: string;
  /** Absent when it was made by a release that did not keep it. */
  readonly lastUsedAt?: Date | null;
  /** Absent when it was made by a release that kept none. */
  readonly history?: readonly HistoryEntry[];
}

/** A studio with its members and sources by id, so that each can be put and removed by itself. */
export interface StudioDocument {
  readonly _id: string;
  readonly status: Studio['status'];
  readonly regionCode: RegionCode | null;
  readonly members: Readonly<Record<string, MemberRole>>;
  readonly sources: Readonly<Record<string, { readonly name: string; readonly enabled: boolean }>>;
  /** Absent when it was made by a release that kept none. */
  readonly history?: readonly HistoryEntry[];
}

export const leadKey = (studioId: string, leadId: string): LeadKey => ({ studioId, id: new UUID(leadId) });

export function leadDocument(lead: Lead, { idempotencyKey, fingerprint, contactKey }: LeadClaims): LeadDocument {
  const { id, sourceId, ...fields } = lead;
  return {
    _id: leadKey(lead.studioId, id),
    ...fields,
    sourceId: sourceId === null ? null : new UUID(sourceId),
    openContactKey: openClaim(contactKey),
    idempotency: {
      key: new UUID(idempotencyKey),
      fingerprint: fingerprint.sha256,
      fingerprintVersion: fingerprint.version,
    },
  };
}

export function leadOf(document: LeadDocument): Lead {
  const { _id, sourceId, openContactKey, idempotency, history, ...fields } = document;
  return { id: _id.id.toString(), sourceId: sourceId?.toString() ?? null, ...fields };
}

export function fingerprintOf({ idempotency }: LeadDocument): Fingerprint {
  return { version: idempotency.fingerprintVersion, sha256: idempotency.fingerprint };
}

export function apiKeyDocument({ id, secretSha256, ...fields }: ApiKey, slot: string): ApiKeyDocument {
  return { _id: new UUID(id), ...fields, secretSha256: new Binary(secretSha256), slot };
}

export function apiKeyOf({ _id, secretSha256, slot, lastUsedAt = null, history, ...fields }: ApiKeyDocument): ApiKey {
  return { id: _id.toString(), ...fields, lastUsedAt, secretSha256: Uint8Array.from(secretSha256.value()) };
}

export const studioOf = ({ _id: id, status, regionCode }: StudioDocument): Studio => ({ id, status, regionCode });

/** A source of a studio; ids are UUIDs. */
export function sourceOf({ _id: studioId, sources }: StudioDocument, id: string): LeadSource | null {
  const source = sources[id];
  return source ? { studioId, id, ...source } : null;
}

/** A member's role. Ids are the CRM's: one may be the name of something that every object has. */
export function roleOf({ members }: Pick<StudioDocument, 'members'>, memberId: string): MemberRole | null {
  return Object.hasOwn(members, memberId) ? (members[memberId] ?? null) : null;
}
