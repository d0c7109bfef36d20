import type { SQLOutputValue } from 'node:sqlite';
import type { ApiKey, ApiKeyScope } from '../../domain/api-key.ts';
import type { AuditEvent } from '../../domain/audit.ts';
import type { ClaimRenewal } from '../../domain/claim-renewal.ts';
import type { Contact, RegionCode } from '../../domain/contact.ts';
import type { Lead, LeadStage } from '../../domain/lead.ts';
import type { LeadSource, Member, MemberRole, Studio } from '../../domain/studio.ts';

/** A row as the driver gives it. The casts below rest on the schema's STRICT tables. */
export type Row = Record<string, SQLOutputValue>;

/** The columns of a studio's lead, in the order in which leadOf takes them. */
export const LEAD_COLUMNS =
  'id, display_name, contact_type, contact_value, source_id, note, stage, created_at, updated_at';

/**
 * A lead from a row as a list. The driver makes lists several times as fast as objects, and a page has many rows.
 *
 * @param row LEAD_COLUMNS, whatever follows
 */
export function leadOf(studioId: string, row: readonly SQLOutputValue[]): Lead {
  const [id, displayName, contactType, contactValue, sourceId, note, stage, createdAt, updatedAt] = row;
  return {
    id: id as string,
    studioId,
    displayName: displayName as string,
    contact: { type: contactType as Contact['type'], value: contactValue as string },
    sourceId: sourceId as string | null,
    note: note as string | null,
    stage: stage as LeadStage,
    createdAt: dateOf(createdAt),
    updatedAt: dateOf(updatedAt),
  };
}

export const apiKeyOf = (row: Row): ApiKey => ({
  id: row.id as string,
  studioId: row.studio_id as string,
  memberId: row.member_id as string,
  name: row.name as string,
  scopes: (row.scopes as string).split(' ') as ApiKeyScope[],
  createdAt: dateOf(row.created_at),
  expiresAt: dateOf(row.expires_at),
  revokedAt: row.revoked_at === null ? null : dateOf(row.revoked_at),
  secretSha256: row.secret_sha256 as Uint8Array,
  secretHint: row.secret_hint as string,
  lastUsedAt: row.last_used_at === null ? null : dateOf(row.last_used_at),
});

export const studioOf = (row: Row): Studio => ({
  id: row.id as string,
  status: row.status as Studio['status'],
  regionCode: row.region_code as RegionCode | null,
  formerRules: renewalOf(row)?.formerRules ?? [],
});

/** How far the claims of a studio's open leads are made anew; null: all are by the rule of today. */
export function renewalOf({ claim_renewal: json }: Row): ClaimRenewal | null {
  if (json === null) return null;
  const renewal = JSON.parse(json as string) as ClaimRenewal;
  return { ...renewal, since: new Date(renewal.since) };
}

/** The same as it is stored. */
export const renewalJson = (renewal: ClaimRenewal | null): string | null => {
  if (renewal === null) return null;
  const { step, since, after, formerRules } = renewal;
  return JSON.stringify({ step, since: since.getTime(), after, formerRules });
};

export const memberOf = (row: Row): Member => ({
  studioId: row.studio_id as string,
  id: row.id as string,
  role: row.role as MemberRole,
});

export const leadSourceOf = (row: Row): LeadSource => ({
  studioId: row.studio_id as string,
  id: row.id as string,
  name: row.name as string,
  enabled: row.enabled === 1,
});

export const auditEventOf = (row: Row): AuditEvent => ({
  studioId: row.studio_id as string,
  action: row.action as AuditEvent['action'],
  memberId: row.member_id as string | null,
  time: dateOf(row.time),
  apiKeyId: row.api_key_id as string | null,
  leadId: row.lead_id as string | null,
  from: row.from_value as string | null,
  to: row.to_value as string | null,
});

const dateOf = (value: SQLOutputValue | undefined): Date => new Date(value as number);
