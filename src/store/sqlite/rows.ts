import type { SQLOutputValue } from 'node:sqlite';
import type { ApiKey, ApiKeyScope } from '../../domain/api-key.ts';
import type { Contact, RegionCode } from '../../domain/contact.ts';
import type { Lead, LeadStage } from '../../domain/lead.ts';
import type { LeadSource, Member, MemberRole, Studio } from '../../domain/studio.ts';

/** A row as the driver gives it. The casts below rest on the schema's STRICT tables. */
export type Row = Record<string, SQLOutputValue>;

export const leadOf = (row: Row): Lead => ({
  id: row.id as string,
  studioId: row.studio_id as string,
  displayName: row.display_name as string,
  contact: { type: row.contact_type as Contact['type'], value: row.contact_value as string },
  sourceId: row.source_id as string | null,
  note: row.note as string | null,
  stage: row.stage as LeadStage,
  createdAt: dateOf(row.created_at),
  updatedAt: dateOf(row.updated_at),
});

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
});

export const studioOf = (row: Row): Studio => ({
  id: row.id as string,
  status: row.status as Studio['status'],
  regionCode: row.region_code as RegionCode | null,
});

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

const dateOf = (value: SQLOutputValue | undefined): Date => new Date(value as number);
