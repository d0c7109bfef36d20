import type { SQLOutputValue } from 'node:sqlite';
import type { ApiKey } from '../../domain/api-key.ts';
import type { AuditEvent } from '../../domain/audit.ts';
import type { OriginalFields } from '../../domain/correction.ts';
import type { Fingerprint } from '../../domain/fingerprint.ts';
import type { ErasedLead, Lead } from '../../domain/lead.ts';
import type { LeadSource, Member, Studio } from '../../domain/studio.ts';
import {
  type Checked,
  checkedApiKey,
  checkedEarlierLead,
  checkedErasedLead,
  checkedEvent,
  checkedFingerprint,
  checkedLead,
  checkedLeadSource,
  checkedListedStudio,
  checkedMember,
  checkedStudio,
  type Unchecked,
} from '../checked.ts';
import { regionsOfRenewal } from '../release-1-1.ts';
import type { ReportUnreadable } from '../store.ts';
import { hashText, idText } from './stored-ids.ts';

/** A row as the driver returns it. STRICT tables guarantee the column types; everything else is checked. */
export type Row = Record<string, SQLOutputValue>;

/**
 * SQL that clamps an integer column to what the driver can read; a larger number would fail the whole query. Clamped
 * values are beyond every valid time.
 */
export const number = (column: string) => `min(max(${column}, -9000000000000000), 9000000000000000)`;

/** The columns of a lead, in the order of leadOf. */
export const LEAD_COLUMNS = `
  hex(id), display_name, contact_type, contact_value, iif(source_id IS NULL, NULL, hex(source_id)), note, stage,
  ${number('created_at')}, ${number('updated_at')}, ${number('erased_at')}`;

/** The columns of a lead and its creation, in the order of earlierLeadOf and storedFingerprint. */
export const CREATION_COLUMNS = `${LEAD_COLUMNS}, original, ${number('fingerprint_version')}, hex(fingerprint)`;

/** The columns of a key, qualified for joins. */
export const API_KEY_COLUMNS = `
  api_keys.studio_id, api_keys.id, api_keys.member_id, api_keys.name, api_keys.scopes, api_keys.secret_sha256,
  api_keys.secret_hint, api_keys.slot, ${number('api_keys.created_at')} AS created_at,
  ${number('api_keys.expires_at')} AS expires_at, ${number('api_keys.revoked_at')} AS revoked_at,
  ${number('api_keys.last_used_at')} AS last_used_at, ${number('api_keys.quota_limit')} AS quota_limit`;

/** The columns of a studio but its id, qualified for joins. */
export const STUDIO_FIELDS = `
  studios.status, studios.region_code, studios.claim_renewal,
  (SELECT json_group_array(region_code) FROM former_regions WHERE studio_id = studios.id) AS former_regions,
  ${number('studios.quota_limit')} AS quota_limit`;

export const STUDIO_COLUMNS = `id, ${STUDIO_FIELDS}`;

export const SOURCE_COLUMNS = 'studio_id, id, name, enabled = 1 AS enabled';

export const EVENT_COLUMNS = `
  studio_id, lead_id, api_key_id, action, member_id, caller, ${number('time')} AS time, from_value, to_value`;

/**
 * Returns the lead of a row.
 *
 * @param row LEAD_COLUMNS, perhaps followed by others
 */
export const leadOf = (studioId: string, row: readonly SQLOutputValue[]): Checked<Lead> =>
  checkedLead(leadIn(studioId, row));

/** Returns the lead of a row; null: it was erased. */
export const presentLeadOf = (studioId: string, row: readonly SQLOutputValue[]): Checked<Lead> | null =>
  isErased(row) ? null : leadOf(studioId, row);

/** Whether the personal data of a lead were erased. @param row LEAD_COLUMNS, perhaps followed by others */
export const isErased = (row: readonly SQLOutputValue[]): boolean => row[ERASED_AT] !== null;
const ERASED_AT = 9;

/** @param row LEAD_COLUMNS, perhaps followed by others */
export const erasedLeadOf = (studioId: string, row: readonly SQLOutputValue[]): Checked<ErasedLead> => {
  const { id, stage, createdAt, updatedAt } = leadIn(studioId, row);
  return checkedErasedLead({ id, studioId, stage, createdAt, updatedAt, erasedAt: dateOf(row[ERASED_AT]) });
};

/** Returns the lead of a row for a replay of its creation. @param row CREATION_COLUMNS */
export const earlierLeadOf = (studioId: string, row: readonly SQLOutputValue[]): Checked<Lead> =>
  checkedEarlierLead(leadIn(studioId, row), originalIn(row.at(-3) as string | null));

/** The unchecked original fields; undefined: the lead was never corrected. */
function originalIn(json: string | null): Unchecked<OriginalFields> | undefined {
  if (json === null) return undefined;
  try {
    const { displayName, sourceId, note } = Object(JSON.parse(json));
    return { displayName, sourceId, note };
  } catch {
    return { displayName: undefined, sourceId: undefined, note: undefined };
  }
}

/** The original fields of a lead, as stored. */
export const originalJson = ({ displayName, sourceId, note }: OriginalFields): string =>
  JSON.stringify({ displayName, sourceId, note });

/** The unchecked lead of a row. */
function leadIn(studioId: string, row: readonly SQLOutputValue[]): Unchecked<Lead> {
  const [id, displayName, contactType, contactValue, sourceId, note, stage, createdAt, updatedAt] = row;
  return {
    id: idText(id as string),
    studioId,
    displayName,
    contact: { type: contactType, value: contactValue },
    sourceId: sourceId === null ? null : idText(sourceId as string),
    note,
    stage,
    createdAt: dateOf(createdAt),
    updatedAt: dateOf(updatedAt),
  };
}

/** @param row CREATION_COLUMNS */
export function storedFingerprint(studioId: string, row: readonly SQLOutputValue[]): Checked<Fingerprint> {
  const [version, sha256] = row.slice(-2);
  const read = { version, sha256: hashText(Buffer.from(sha256 as string, 'hex')) };
  return checkedFingerprint(read, { studioId, id: idText(row[0] as string) });
}

export const apiKeyOf = (row: Row): Checked<ApiKey> => checkedApiKey(apiKeyIn(row));

/** The unchecked key of a row. */
export const apiKeyIn = (row: Row): Unchecked<ApiKey> => ({
  id: row.id,
  studioId: row.studio_id,
  memberId: row.member_id,
  name: row.name,
  scopes: (row.scopes as string).split(' '),
  createdAt: dateOf(row.created_at),
  expiresAt: dateOf(row.expires_at),
  revokedAt: row.revoked_at === null ? null : dateOf(row.revoked_at),
  secretSha256: row.secret_sha256,
  secretHint: row.secret_hint,
  lastUsedAt: row.last_used_at === null ? null : dateOf(row.last_used_at),
  quotaLimit: row.quota_limit,
});

export const studioOf = (row: Row, report: ReportUnreadable): Studio => checkedStudio(studioIn(row), report);

/** The unchecked studio of a row. */
const studioIn = (row: Row): Unchecked<Studio> & Pick<Studio, 'id'> => ({
  id: row.id as string,
  status: row.status,
  regionCode: row.region_code,
  quotaLimit: row.quota_limit,
  formerRegions: formerRegionsIn(row),
});

export const listedStudioOf = (row: Row, report: ReportUnreadable): Checked<Studio> =>
  checkedListedStudio(studioIn(row), report);

/** The unchecked former regions of a studio, including those that a core of release 1.1 has replaced. */
function formerRegionsIn({ former_regions, claim_renewal: json }: Row): unknown[] {
  const former = (JSON.parse(former_regions as string) as string[]).map((region) => region || null);
  return json === null ? former : [...former, ...regionsOfRenewal(objectIn(json as string))];
}

function objectIn(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

export const memberOf = (row: Row): Checked<Member> =>
  checkedMember({ studioId: row.studio_id, id: row.id, role: row.role });

export const leadSourceOf = (row: Row): Checked<LeadSource> =>
  checkedLeadSource({ studioId: row.studio_id, id: row.id, name: row.name, enabled: row.enabled === 1 });

export const auditEventOf = (row: Row): Checked<AuditEvent> =>
  checkedEvent({
    studioId: row.studio_id,
    action: row.action,
    memberId: row.member_id,
    caller: row.caller,
    time: dateOf(row.time),
    apiKeyId: row.api_key_id,
    leadId: row.lead_id,
    from: row.from_value,
    to: row.to_value,
  });

const dateOf = (value: SQLOutputValue | undefined): Date => new Date(value as number);
