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
  /** A change of the days starts another grace period, not before `graceFrom`. */
  readonly retentionDays?: number | null | undefined;
  readonly graceFrom?: Date | null | undefined;
}

/** `not-found`: the studio does not exist, and `status` is undefined. Only `put` writes; its studio is the one after the change. */
export type PutStudioOutcome =
  | { readonly kind: 'put'; readonly studio: Studio }
  | { readonly kind: 'not-found' | 'test-differs' | 'ended' };

export type EndStudioOutcome =
  | { readonly kind: 'ended'; readonly members: number; readonly sources: number }
  | { readonly kind: 'not-found' };

/** The outcome of putting a member or source, whose number is limited. */
export type PutOutcome = 'put' | 'no-studio' | 'ended' | 'limit-reached';

export interface StudioStore {
  /**
   * putStudio must create a studio, or change the given fields of one, even of an unreadable one. Its members and
   * sources must not change. A changed status, quota, region (including the first), keeping of enquiries or retention
   * must be stored with an event in the same write. A studio without room for an event must still be suspended. A
   * replaced region must join the former ones in the same write, even under concurrent calls.
   */
  putStudio(studio: StudioPut, by: AuditContext): Promise<PutStudioOutcome>;

  /**
   * endStudio must end a studio, and remove its members, sources and retention, in one write; a new status must be stored
   * with an event. From then on, no putStudio may change the studio, and no call that begins later may add a member or
   * source. A further endStudio removes members and sources that earlier calls have added meanwhile.
   */
  endStudio(studioId: string, by: AuditContext): Promise<EndStudioOutcome>;

  /** Returns a studio; an unreadable one is suspended and has no region. */
  findStudio(studioId: string): Promise<Studio | null>;

  /** Lists studios as findStudio returns them, ordered by the bytes of their ids. Skips studios with an invalid id. */
  listStudios(after: string | null, limit: number): Promise<Page<Studio>>;
}

export interface DirectoryStore extends StudioStore {
  /**
   * putMember must create or replace a member. It must not store a new one when the studio does not exist or has
   * MAX_MEMBERS members, even under concurrent calls. A change must be stored with an event in one write.
   */
  putMember(member: Member, by: AuditContext): Promise<PutOutcome>;

  /** Returns a member; null if there is none, or its role is unknown. */
  findMember(studioId: string, memberId: string): Promise<Member | null>;

  /** Removes a member, with an event in one write, and returns it; null if there was none, or its role is unknown. */
  removeMember(studioId: string, memberId: string, by: AuditContext): Promise<Member | null>;

  /** putLeadSource must create or replace a source, as putMember does, with the limit MAX_LEAD_SOURCES. */
  putLeadSource(source: LeadSource, by: AuditContext): Promise<PutOutcome>;

  /** Removes a source, with an event in one write, and returns it; null if there was none, or it is unreadable. */
  removeLeadSource(studioId: string, sourceId: string, by: AuditContext): Promise<LeadSource | null>;

  /** Returns a source; null if there is none, or it is unreadable. */
  findLeadSource(studioId: string, sourceId: string): Promise<LeadSource | null>;

  /** Lists the readable sources of the studio, lowest id first. */
  listLeadSources(studioId: string, after: string | null, limit: number): Promise<Page<LeadSource>>;
}
