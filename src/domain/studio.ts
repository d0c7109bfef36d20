import type { ContactRules } from './claims.ts';

/** A studio of the CRM; ids are the CRM's own. */
export interface Studio extends ContactRules {
  readonly id: string;
  readonly status: 'active' | 'suspended';
}

/** What a member may do in a studio. */
export type MemberRole = 'owner' | 'admin' | 'staff';

/** A person who works in a studio. */
export interface Member {
  readonly studioId: string;
  readonly id: string;
  readonly role: MemberRole;
}

/** Owners and admins see, issue, replace and revoke keys. */
export const mayManageKeys = (role: MemberRole | null): boolean => role === 'owner' || role === 'admin';

/** Where leads come from; the id is a UUID in lower case. */
export interface LeadSource {
  readonly studioId: string;
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
}
