import type { AuditContext } from '../../domain/audit.ts';
import type { RegionCode } from '../../domain/contact.ts';
import type { LeadSource, Member, Studio } from '../../domain/studio.ts';
import type { Page } from './page.ts';

/** Changes to a studio's record; undefined fields do not change. */
export interface StudioPut {
  readonly id: string;
  /** Required for a new studio. */
  readonly status: Studio['status'] | undefined;
  readonly regionCode: RegionCode | null | undefined;
  readonly quotaLimit?: number | null | undefined;
  readonly keepEnquiries?: boolean | undefined;
  readonly isTest?: boolean | undefined;
  /** A change of it begins another grace, not before this time. */
  readonly retentionDays?: number | null | undefined;
  readonly graceFrom?: Date | null | undefined;
}

/** Null: the studio does not exist, and `status` is undefined; `other-kind`: `isTest` differs; `ended`: it has. None of them writes anything. */
export type PutStudioOutcome = Studio | null | 'other-kind' | 'ended';

/** The outcome of ending a studio, with the numbers of its members and sources. */
export type EndStudioOutcome =
  | { readonly kind: 'ended'; readonly members: number; readonly sources: number }
  | { readonly kind: 'not-found' };

/** The outcome of putting a member or a source, whose number is limited. */
export type PutOutcome = 'put' | 'no-studio' | 'ended' | 'limit-reached';

export interface DirectoryStore {
  /**
   * putStudio must create a studio, or change the given fields of one, also of an unreadable one; its members and
   * sources must not change. A new status, quota, region, including the first, keeping of enquiries, or retention must be
   * stored with an event in the same write; a studio without room for an event must still be suspended. A region that is replaced must be added to the
   * former ones in the same write, also by concurrent calls.
   *
   * @returns the studio after the change
   */
  putStudio(studio: StudioPut, by: AuditContext): Promise<PutStudioOutcome>;

  /**
   * endStudio must end a studio, and remove its members, sources and retention, in one write; a new status must be stored with an event. From then on no putStudio may change it, and no member or source may come
   * from a call that begins later. A studio that has ended loses those that have come since.
   */
  endStudio(studioId: string, by: AuditContext): Promise<EndStudioOutcome>;

  /** Returns a studio; an unreadable one is suspended and has no region. */
  findStudio(studioId: string): Promise<Studio | null>;

  /** Lists studios as findStudio returns them, ordered by the bytes of their ids. Skips those with an invalid id. */
  listStudios(after: string | null, limit: number): Promise<Page<Studio>>;

  /**
   * putMember must create or replace a member. A new member must not be stored when the studio does not exist or has
   * MAX_MEMBERS members, which must hold for concurrent calls. A change must be stored with an event in one write.
   */
  putMember(member: Member, by: AuditContext): Promise<PutOutcome>;

  /** Returns a member; null when its role is unknown. */
  findMember(studioId: string, memberId: string): Promise<Member | null>;

  /** Removes a member, with an event in one write, and returns it; null when there was none, or its role is unknown. */
  removeMember(studioId: string, memberId: string, by: AuditContext): Promise<Member | null>;

  /** putLeadSource must create or replace a source, as putMember does, with the limit MAX_LEAD_SOURCES. */
  putLeadSource(source: LeadSource, by: AuditContext): Promise<PutOutcome>;

  /** Removes a source, with an event in one write, and returns it; null when there was none, or it is unreadable. */
  removeLeadSource(studioId: string, sourceId: string, by: AuditContext): Promise<LeadSource | null>;

  /** Returns a source; null when it is unreadable. */
  findLeadSource(studioId: string, sourceId: string): Promise<LeadSource | null>;

  /** Lists the readable sources of the studio, lowest id first. */
  listLeadSources(studioId: string, after: string | null, limit: number): Promise<Page<LeadSource>>;
}
