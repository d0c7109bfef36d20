import type { ContactRules } from './claims.ts';

/** Whether the public API serves a studio. */
export const STUDIO_STATUSES = ['active', 'suspended'] as const;

/** A studio of the CRM; ids are the CRM's own. */
export interface Studio extends ContactRules {
  readonly id: string;
  readonly status: (typeof STUDIO_STATUSES)[number];
  /** How many requests all its keys together may make in a window; null: as many as the gateways are set to. */
  readonly quotaLimit: number | null;
}

/** What a member may do in a studio. */
export const MEMBER_ROLES = ['owner', 'admin', 'staff'] as const;
export type MemberRole = (typeof MEMBER_ROLES)[number];

/**
 * How many members, and how many sources, a studio has at most. A studio with a thousand of either is beyond any that was seen,
 * and with the longest names all of them are less than a megabyte: far from the 16 that a document of MongoDB can have, and
 * from the 4 that a message of gRPC usually can.
 */
export const MAX_MEMBERS = 1000;
export const MAX_LEAD_SOURCES = 1000;

/** A person who works in a studio. */
export interface Member {
  readonly studioId: string;
  readonly id: string;
  readonly role: MemberRole;
}

/** Owners and admins see, issue, replace and revoke keys. @rule 5.4 5.10 */
export const mayManageKeys = (role: MemberRole | null): boolean => role === 'owner' || role === 'admin';

/** Where leads come from; the id is a UUID in lower case. */
export interface LeadSource {
  readonly studioId: string;
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
}
