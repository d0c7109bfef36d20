import type { StudioRegions } from './contact.ts';

/** The statuses of a studio. The public API serves only active ones. An ended one never changes its status. */
export const STUDIO_STATUSES = ['active', 'suspended', 'ended'] as const;

/** A studio of the CRM. The CRM chooses its id. */
export interface Studio extends StudioRegions {
  readonly id: string;
  readonly status: (typeof STUDIO_STATUSES)[number];
  /** The maximum number of requests per window of all its keys together; null: the gateways' default. */
  readonly quotaLimit: number | null;
  /** Whether its open leads keep the enquiries of the creations that they prevent. */
  readonly keepEnquiries: boolean;
  /** Whether its leads are for tests. Exports and consumers of all studios must ask for it. Never changes. */
  readonly isTest: boolean;
  /** How long it keeps closed leads; null: until somebody erases them. */
  readonly retention: Retention | null;
}

/** The time for which a studio keeps unchanged closed leads. */
export interface Retention {
  /** Whole days, MIN_RETENTION_DAYS to MAX_RETENTION_DAYS. */
  readonly days: number;
  /** When it was set. */
  readonly since: Date;
}

export const MEMBER_ROLES = ['owner', 'admin', 'staff'] as const;
export type MemberRole = (typeof MEMBER_ROLES)[number];

/**
 * The maximum number of members, and of lead sources, of a studio. With the longest names they take less than 1 MB. A
 * MongoDB document may have 16 MB, a gRPC message usually 4 MB.
 */
export const MAX_MEMBERS = 1000;
export const MAX_LEAD_SOURCES = 1000;

/** A person who works in a studio. The CRM chooses the id. */
export interface Member {
  readonly studioId: string;
  readonly id: string;
  readonly role: MemberRole;
}

/** Returns a member as the audit log stores it; null: not a member. A role that no release wrote becomes "unknown". */
export const memberText = (id: string, role: unknown): string | null =>
  role === undefined ? null : `${id} ${MEMBER_ROLES.find((known) => known === role) ?? 'unknown'}`;

/** Returns a source as the audit log stores it. @param source undefined: it does not exist */
export const sourceText = (id: string, source: { readonly enabled: unknown } | undefined): string | null =>
  source === undefined ? null : `${id} ${source.enabled === true ? 'enabled' : 'disabled'}`;

export interface SourceSettings {
  readonly name: string;
  readonly enabled: boolean;
}

/** An origin of leads, such as a form or a campaign. The id is a UUID in lower case. */
export interface LeadSource extends SourceSettings {
  readonly studioId: string;
  readonly id: string;
}

/** The maximum quota of a key or studio; the minimum is 1. */
const MAX_QUOTA_LIMIT = 1_000_000_000;

/** Whether a value is a valid quota: requests per window of a key, or of all keys of a studio together. */
export const isQuotaLimit = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_QUOTA_LIMIT;

export const quotaLimitFault = (limit: number): string | undefined =>
  isQuotaLimit(limit) ? undefined : `must be 1 to ${MAX_QUOTA_LIMIT}`;

const MIN_RETENTION_DAYS = 30;
const MAX_RETENTION_DAYS = 3650;

export const isRetentionDays = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= MIN_RETENTION_DAYS && (value as number) <= MAX_RETENTION_DAYS;

export const retentionDaysFault = (days: number): string | undefined =>
  isRetentionDays(days) ? undefined : `must be ${MIN_RETENTION_DAYS} to ${MAX_RETENTION_DAYS}`;

/** Returns the text with which the audit log stores whether enquiries are kept. */
export const keepingText = (keepEnquiries: boolean): string => (keepEnquiries ? 'kept' : 'not kept');

/** Returns a quota, or the days of a retention, as the audit log stores it. Null stays null. */
export const numberText = (number: number | null): string | null => (number === null ? null : String(number));
