import type { SQLOutputValue } from 'node:sqlite';
import type { ApiKey } from '../../domain/api-key.ts';
import type { AuditEvent } from '../../domain/audit.ts';
import type { ClaimRenewal } from '../../domain/claim-renewal.ts';
import type { OriginalFields } from '../../domain/correction.ts';
import type { Fingerprint } from '../../domain/fingerprint.ts';
import type { ErasedLead, Lead } from '../../domain/lead.ts';
import type { LeadSource, Member, Studio } from '../../domain/studio.ts';
import {
  type Checked,
  checkedApiKey,
  checkedClaimingLead,
  checkedEarlierLead,
  checkedErasedLead,
  checkedEvent,
  checkedFingerprint,
  checkedLead,
  checkedLeadSource,
  checkedListedStudio,
  checkedMember,
  checkedRenewal,
  checkedStudio,
  formerRulesIn,
  type Unchecked,
} from '../checked.ts';
import type { ClaimingLead, ReportUnreadable } from '../store.ts';
import { hashesIn, hashText, idText } from './stored-ids.ts';

/** A row as the driver gives it. The schema's STRICT tables have the types right; whatever else stands there is checked. */
export type Row = Record<string, SQLOutputValue>;

/**
 * A column of whole numbers as the driver can read it: a larger number would be a failure of the whole answer, with
 * everybody's rows in it. What is cut off here is beyond every time.
 */
export const number = (column: string) => `min(max(${column}, -9000000000000000), 9000000000000000)`;

/** The columns of a studio's lead, in the order in which leadOf takes them. */
export const LEAD_COLUMNS = `
  hex(id), display_name, contact_type, contact_value, iif(source_id IS NULL, NULL, hex(source_id)), note, stage,
  ${number('created_at')}, ${number('updated_at')}, ${number('erased_at')}`;

/** The columns of a lead and of what it was created with, in the order in which earlierLeadOf and storedFingerprint take them. */
export const CREATION_COLUMNS = `${LEAD_COLUMNS}, original, ${number('fingerprint_version')}, hex(fingerprint)`;

/** The columns of a key, also where other tables are joined to it. */
export const API_KEY_COLUMNS = `
  api_keys.studio_id, api_keys.id, api_keys.member_id, api_keys.name, api_keys.scopes, api_keys.secret_sha256,
  api_keys.secret_hint, api_keys.slot, ${number('api_keys.created_at')} AS created_at,
  ${number('api_keys.expires_at')} AS expires_at, ${number('api_keys.revoked_at')} AS revoked_at,
  ${number('api_keys.last_used_at')} AS last_used_at, ${number('api_keys.quota_limit')} AS quota_limit`;

/** The columns of a studio. */
export const STUDIO_COLUMNS = `id, status, region_code, claim_renewal, ${number('quota_limit')} AS quota_limit`;

/** The columns of a source. */
export const SOURCE_COLUMNS = 'studio_id, id, name, enabled = 1 AS enabled';

/** The columns of an event. */
export const EVENT_COLUMNS = `
  studio_id, lead_id, api_key_id, action, member_id, caller, ${number('time')} AS time, from_value, to_value`;

/**
 * A lead from a row as a list. The driver makes lists several times as fast as objects, and a page has many rows.
 *
 * @param row LEAD_COLUMNS, whatever follows
 */
export const leadOf = (studioId: string, row: readonly SQLOutputValue[]): Checked<Lead> =>
  checkedLead(leadIn(studioId, row));

/** The same; null: it was erased. */
export const presentLeadOf = (studioId: string, row: readonly SQLOutputValue[]): Checked<Lead> | null =>
  isErased(row) ? null : leadOf(studioId, row);

/** Whether what a lead tells of its person was erased. @param row LEAD_COLUMNS, whatever follows */
export const isErased = (row: readonly SQLOutputValue[]): boolean => row[ERASED_AT] !== null;
const ERASED_AT = 9;

/** What is kept of an erased lead. @param row LEAD_COLUMNS, whatever follows */
export const erasedLeadOf = (studioId: string, row: readonly SQLOutputValue[]): Checked<ErasedLead> => {
  const { id, stage, createdAt, updatedAt } = leadIn(studioId, row);
  return checkedErasedLead({ id, studioId, stage, createdAt, updatedAt, erasedAt: dateOf(row[ERASED_AT]) });
};

/** The lead that a creation made before. @param row CREATION_COLUMNS */
export const earlierLeadOf = (studioId: string, row: readonly SQLOutputValue[]): Checked<Lead> =>
  checkedEarlierLead(leadIn(studioId, row), originalIn(row.at(-3) as string | null));

/** What a lead was created with, whatever stands there; undefined: it was never corrected. */
function originalIn(json: string | null): Unchecked<OriginalFields> | undefined {
  if (json === null) return undefined;
  try {
    const { displayName, sourceId, note } = Object(JSON.parse(json));
    return { displayName, sourceId, note };
  } catch {
    return { displayName: undefined, sourceId: undefined, note: undefined };
  }
}

/** The same as it is stored. */
export const originalJson = ({ displayName, sourceId, note }: OriginalFields): string =>
  JSON.stringify({ displayName, sourceId, note });

/** A lead with whatever stands in its columns. */
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

/** A key with whatever stands in its columns. */
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

/** A studio with whatever stands in its columns. */
const studioIn = (row: Row): Unchecked<Studio> & Pick<Studio, 'id'> => ({
  id: row.id as string,
  status: row.status,
  regionCode: row.region_code,
  quotaLimit: row.quota_limit,
  formerRules: formerRulesIn(renewalOf(row)),
});

/** A studio in a list. */
export const listedStudioOf = (row: Row, report: ReportUnreadable): Checked<Studio> =>
  checkedListedStudio(studioIn(row), report);

/** How far the claims of a studio's leads are made anew; null: all are by the rule of today. */
export function renewalOf({ id, claim_renewal: json }: Row): Checked<ClaimRenewal> | null {
  if (json === null) return null;
  return checkedRenewal(renewalIn(json as string), id as string);
}

/** A renewal with whatever stands in its fields. */
function renewalIn(json: string): Unchecked<ClaimRenewal> {
  try {
    const { step, since, after, formerRules } = Object(JSON.parse(json));
    return { step, since: new Date(since), after, formerRules };
  } catch {
    return { step: undefined, since: undefined, after: undefined, formerRules: undefined };
  }
}

/** The same as it is stored. */
export const renewalJson = (renewal: ClaimRenewal | null): string | null => {
  if (renewal === null) return null;
  const { step, since, after, formerRules } = renewal;
  return JSON.stringify({ step, since: since.getTime(), after, formerRules });
};

/** The columns of what a lead claims. */
export const CLAIM_COLUMNS = `
  hex(id) AS id, contact_type, contact_value, stage, contact_keys, ${number('rule_version')} AS rule_version, rule_region`;

export const claimingLeadOf = (studioId: string, row: Row): Checked<ClaimingLead> =>
  checkedClaimingLead(studioId, {
    id: idText(row.id as string),
    contact: { type: row.contact_type, value: row.contact_value },
    stage: row.stage,
    contactKeys: hashesIn(row.contact_keys as Uint8Array),
    contactRule: { version: row.rule_version, region: row.rule_region },
  });

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
