import type { ApiKey } from '../domain/api-key.ts';
import type { AuditContext, AuditEvent } from '../domain/audit.ts';
import type { ClaimRenewal } from '../domain/claim-renewal.ts';
import type { ClaimsOfContact, OpenClaims } from '../domain/claims.ts';
import type { Contact, RegionCode } from '../domain/contact.ts';
import type { Correction } from '../domain/correction.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import type { ErasedLead, Lead, LeadClaims, LeadStage } from '../domain/lead.ts';
import type { Acknowledgement, LeadChange } from '../domain/lead-change.ts';
import type { LeadSource, Member, MemberRole, Studio } from '../domain/studio.ts';

/**
 * The store port. Each method is one atomic promise: it is kept whole or not at all, also when the process dies in the
 * middle, when several processes call at once, and when the answer gets lost. What is answered as written is durable.
 *
 * A method that cannot keep its promise now, or cannot know whether it did, rejects with StoreUnavailable; repeating the
 * call is then safe. `test/contract/store-contract.ts` holds every "must" below against every adapter.
 *
 * What the database holds is not always what this release wrote. Every record is checked as it is read. One that cannot be
 * read must make no difference to any call but those that ask for that very record, and what it is closed for must stay
 * closed; a call that goes on without it must report it.
 */
export interface Store
  extends LeadStore,
    LeadChangeStore,
    LeadErasureStore,
    ApiKeyStore,
    DirectoryStore,
    AuditStore,
    ClaimRenewalStore {
  /**
   * Must resolve only when the store can answer and keep what it is given, and every index is as it must be. Rejects with
   * StoreUnavailable otherwise, whose message and causes say why, in words that have ids of leads and keys and nothing else of them.
   */
  check(): Promise<void>;
  /** Lets go of the database after the writes under way; may be called twice. */
  close(): Promise<void>;
}

/** The store cannot answer, or does not know what became of a write. */
export class StoreUnavailable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'StoreUnavailable';
  }
}

/** What the store keeps records of. */
export type RecordKind = 'lead' | 'API key' | 'studio' | 'member' | 'lead source' | 'event';

/**
 * A record that is there and is not as this release writes it: another program, another release or somebody's hand did. It
 * says which one and where, never what stands there.
 */
export class UnreadableRecord extends Error {
  readonly kind: RecordKind;
  readonly studioId: string;
  readonly id: string;
  /** The first field that is missing, of the wrong type, or none of the words that are known. */
  readonly field: string;

  constructor(kind: RecordKind, { studioId, id }: { readonly studioId: string; readonly id: string }, field: string) {
    super(`the ${kind} ${id} of studio ${studioId} cannot be read: ${field} is not as it must be`);
    this.name = 'UnreadableRecord';
    this.kind = kind;
    this.studioId = studioId;
    this.id = id;
    this.field = field;
  }
}

/** Is told of a record that cannot be read where a call goes on without it. */
export type ReportUnreadable = (record: UnreadableRecord) => void;

/** A part of a list. */
export interface Page<Record> {
  readonly records: readonly Record[];
  /** The id after which the list goes on; null: it ends here. */
  readonly next: string | null;
}

/** A command that a store sends to its database. */
export interface StoreCommand {
  readonly system: 'sqlite' | 'mongodb';
  readonly name: 'commit' | 'find' | 'insert' | 'update';
  /** How many reads or writes share it. */
  readonly size: number;
}

/**
 * Is told of every command to the database, and for whom it goes there.
 *
 * @typeParam Asker what it knows by whom the store is asked; the store keeps that, and gives it back as it is
 */
export interface StoreObserver<Asker> {
  /**
   * By whom the store is asked: must be called while what was asked of the store is being done, and before that waits for
   * others to go together with. Undefined: by nobody whom it needs to know.
   */
  asker(): Asker | undefined;
  /**
   * A command goes to the database.
   *
   * @param askers for whom; one who is there twice has asked twice
   * @returns is told whether it was done
   */
  commandBegins(command: StoreCommand, askers: readonly (Asker | undefined)[]): (isDone: boolean) => void;
}

/**
 * What became of a creation. A replayed lead has the name, source and note that it was created with; its contact and stage are
 * those of now, or where the stage cannot be read, the first one.
 */
export type CreateLeadOutcome =
  | { readonly kind: 'created'; readonly lead: Lead }
  | { readonly kind: 'replayed'; readonly lead: Lead }
  | { readonly kind: 'idempotency-conflict' }
  /** The key has created a lead that was erased since. */
  | { readonly kind: 'erased' }
  | { readonly kind: 'already-open'; readonly leadId: string };

/** The lead that a key has created, as a replay answers it, and what it was made with. */
export interface EarlierCreation {
  readonly lead: Lead;
  readonly fingerprint: Fingerprint;
}

/** That a key has created a lead whose data were erased: nobody knows any more what it was created with. */
export interface ErasedCreation {
  readonly kind: 'erased';
}

/** What became of erasing a lead; one that was erased before stays as it was then. */
export type EraseLeadOutcome =
  | { readonly kind: 'erased'; readonly lead: ErasedLead }
  | { readonly kind: 'not-found' }
  /** It is not as it was expected, and was left alone. */
  | { readonly kind: 'stale' };

/** What became of a change of stage. */
export type ChangeLeadStageOutcome =
  | { readonly kind: 'changed' | 'unchanged'; readonly lead: Lead }
  | { readonly kind: 'already-open'; readonly leadId: string }
  | { readonly kind: 'not-found' | 'other-contact' };

/** What became of an update; stale: the lead has changed since the time that was expected. */
export type UpdateLeadOutcome =
  | { readonly kind: 'updated' | 'unchanged'; readonly lead: Lead }
  | { readonly kind: 'already-open'; readonly leadId: string }
  | { readonly kind: 'not-found' | 'stale' };

export interface LeadStore {
  /**
   * Writes a new lead together with its claims, unless it is open and one of them is taken in the studio. Must look at the
   * idempotency key first: taken with the same fingerprint is a replay, with another a conflict; only then at the
   * contact, of which it is enough that one of its keys is another lead's. Of any number of simultaneous calls with one
   * idempotency key, or with a contact key in common, exactly one must create. What a lead that cannot be read claims stays
   * claimed.
   *
   * @param now since when the creation waits to be told; unless given, since the lead was created
   * @throws UnreadableRecord when it cannot be told what the key created
   */
  createLead(lead: Lead, claims: LeadClaims, now?: Date): Promise<CreateLeadOutcome>;

  /** The lead that an idempotency key created in the studio, whatever became of it since. @throws UnreadableRecord */
  findLeadByIdempotencyKey(studioId: string, idempotencyKey: string): Promise<EarlierCreation | ErasedCreation | null>;

  /** A lead of the studio; must not find another studio's. @throws UnreadableRecord */
  findLead(studioId: string, leadId: string): Promise<Lead | null>;

  /**
   * Leads of the studio, highest id first, at most `limit`. Must pass over those that cannot be read, so that all others
   * are reached; a page has fewer than `limit` and still a next one only after hundreds of them in a row.
   *
   * @param before only leads with a lower id than this; null: from the highest
   */
  listLeads(studioId: string, before: string | null, limit: number): Promise<Page<Lead>>;

  /**
   * The same the other way round: lowest id first. So whoever walks to the end meets every lead that was there when the walk
   * began, once.
   *
   * @param after only leads with a higher id than this; null: from the lowest
   */
  walkLeads(studioId: string, after: string | null, limit: number): Promise<Page<Lead>>;

  /**
   * Leads of the studio of which one of the keys is: what an open one claims, and what a closed one would have claimed when it was
   * closed, corrected or renewed. Each once, in any order; of more than MAX_LEADS_PER_CONTACT so many, the open ones among them. Must
   * pass over those that cannot be read, and must not find another studio's.
   */
  findLeadsOfContact(studioId: string, contactKeys: readonly string[]): Promise<Lead[]>;

  /**
   * Moves a lead to a stage. Must write nothing when it is there already; otherwise `updatedAt` becomes `now`, or the
   * next millisecond after the one before. Closing frees the contact in the same write; reopening takes it again, and
   * must answer already-open, and write nothing, when another lead has it. A change must be kept as an event in the same
   * write.
   *
   * One that stays open, or closed, keeps what it claims, or is found by. One that is to be closed or opened again, and has another
   * contact than the claims are of, must be left as it is, and is answered as such.
   *
   * @param change `claims`: what the lead claims when it is opened again, and is found by once it is closed
   * @throws UnreadableRecord, having written nothing
   */
  changeLeadStage(change: {
    readonly studioId: string;
    readonly leadId: string;
    readonly stage: LeadStage;
    readonly claims: ClaimsOfContact;
    readonly memberId: string | null;
    readonly caller?: string | null | undefined;
    readonly now: Date;
  }): Promise<ChangeLeadStageOutcome>;

  /**
   * Gives a lead other values of some fields. Must look at the expected time first: another is stale. Must write nothing when
   * all values are there already; otherwise `updatedAt` grows as with a stage. An open lead that gets another contact frees what
   * it claims and takes the claims of that in the same write, and must answer already-open, and write nothing, when another lead
   * has one of these. A closed one takes nothing, and is found by the claims from then on. One that keeps its contact keeps what it
   * claims. What the lead was created with must be
   * kept in the first such write, for repetitions of its creation; the event, in each.
   *
   * @param change `claims`: of the contact, if there is another; `expectedUpdatedAt`: null when nothing is expected
   * @throws UnreadableRecord, having written nothing
   */
  updateLead(change: {
    readonly studioId: string;
    readonly leadId: string;
    readonly correction: Correction;
    readonly claims: OpenClaims;
    readonly expectedUpdatedAt: Date | null;
    readonly memberId: string | null;
    readonly caller?: string | null | undefined;
    readonly now: Date;
  }): Promise<UpdateLeadOutcome>;
}

/**
 * Which leads have changes that no consumer has acknowledged. Every write of LeadStore that changes a lead must mark it in the same
 * write, and give it another revision; a lead that was never acknowledged is marked, also one that an earlier release wrote.
 */
export interface LeadChangeStore {
  /**
   * Leads with unacknowledged changes, as they are now; must be durable. Those come first whose changes began first, as far as
   * the clocks of those who wrote them agree. Leads that cannot be read are passed over.
   */
  listLeadChanges(limit: number): Promise<LeadChange[]>;

  /**
   * Ends the changes of each lead that still has the revision that is named; one that has changed since must stay marked.
   *
   * @param acknowledgements at most MAX_ACKNOWLEDGEMENTS
   * @returns how many leads have no unacknowledged change any more that had one
   */
  acknowledgeLeadChanges(acknowledgements: readonly Acknowledgement[]): Promise<number>;

  /**
   * Marks the next `limit` leads of a studio, lowest id first, as if they had changed. Must give each another revision: an earlier
   * acknowledgement must not count for it.
   *
   * @param after only leads with a higher id than this; null: from the lowest
   * @returns how many were marked, and the id that the next such leads follow; null: there are no more
   */
  resendLeads(studioId: string, after: string | null, limit: number, now: Date): Promise<ResentLeads>;

  /**
   * Marks the leads of a studio that a release wrote which marked none; where there can be none, nothing is to be done.
   *
   * @param after only leads with a higher id than this; null: from the lowest
   * @param last only leads up to this one; null: to the highest
   */
  markUnmarked(studioId: string, after: string | null, last: string | null): Promise<void>;

  /** How many leads have unacknowledged changes, counted up to a bound, and when the first of those began. */
  measureLeadChanges(bound: number): Promise<{ readonly leads: number; readonly since: Date | null }>;
}

/** What became of a part of a studio's leads that were to be sent once more. */
export interface ResentLeads {
  readonly leads: number;
  readonly next: string | null;
}

export interface LeadErasureStore {
  /**
   * Erases what a lead tells of its person: name, contact, source and note, what it was created with, and all that was computed from
   * them, its claims included. Its id, its idempotency key, its times and its stage stay. Must be one write, with its event; from then
   * on no other method may find the lead, its contact is free, and its key answers `erased`. Must also erase a lead of which nothing but its stage and times can be
   * read.
   *
   * @throws UnreadableRecord when these cannot be read either, having written nothing
   */
  eraseLead(erasure: {
    readonly studioId: string;
    readonly leadId: string;
    readonly memberId: string | null;
    readonly caller?: string | null | undefined;
    readonly now: Date;
    /** When the lead must have changed last, to be erased; absent: whenever. One that is erased already stays as it is. */
    readonly expectedUpdatedAt?: Date;
  }): Promise<EraseLeadOutcome>;

  /**
   * The erased ones among the next `limit` leads of a studio, lowest id first, and the id that the next such leads follow; null:
   * there are no more. One that cannot be read is passed over.
   *
   * @param after only leads with a higher id than this; null: from the lowest
   */
  walkErasedLeads(
    studioId: string,
    after: string | null,
    limit: number,
  ): Promise<{ readonly leads: readonly ErasedLead[]; readonly next: string | null }>;
}

/** What became of replacing a key's secret. */
export type ReplaceApiKeyOutcome =
  | { readonly kind: 'replaced'; readonly key: ApiKey }
  | { readonly kind: 'not-found' | 'revoked' | 'expired' | 'limit-reached' };

/** Everything that decides what the bearer of a secret may do now. */
export interface Credential {
  readonly key: ApiKey;
  readonly studio: Studio;
  /** The issuer's role; null when the issuer is no longer a member. */
  readonly issuerRole: MemberRole | null;
  /** The source that was asked about too; null when the studio has none such. */
  readonly source: LeadSource | null;
}

export interface ApiKeyStore {
  /**
   * Writes a new key, unless LIVE_KEYS_PER_STUDIO keys of the studio are live at `now`, also when many are asked for at
   * once; one that cannot be read counts until it is revoked. Answers whether it was written; it must be, together with an
   * event that its issuer created it.
   */
  createApiKey(key: ApiKey, now: Date, caller?: string | null): Promise<boolean>;

  /** All keys of the studio, highest id first; one that cannot be read must be there as legibleApiKey tells it. */
  listApiKeys(studioId: string): Promise<ApiKey[]>;

  /**
   * Gives a key another secret and issuer, and another expiry if one is given. The old secret must be dead when this
   * resolves. A revoked key is left alone, and so is one past its expiry at `now` without another. One that comes back
   * to life counts towards the limit like a new one. A replacement must be kept as an event in the same write.
   *
   * @throws UnreadableRecord, having written nothing
   */
  replaceApiKey(replacement: {
    readonly studioId: string;
    readonly keyId: string;
    readonly memberId: string;
    readonly caller?: string | null | undefined;
    readonly secretSha256: Uint8Array;
    readonly secretHint: string;
    readonly expiresAt: Date | null;
    readonly now: Date;
  }): Promise<ReplaceApiKeyOutcome>;

  /**
   * Revokes a key, which must be kept as an event in the same write; a revoked one stays as it is. Must revoke one that
   * cannot be read, too. Answers the key, or null when the studio has no such key.
   */
  revokeApiKey(studioId: string, keyId: string, by: AuditContext): Promise<ApiKey | null>;

  /**
   * Gives a key a quota of its own; null takes that away. Must change nothing else of the key. Another one than before must be
   * kept as an event in the same write.
   *
   * @returns the key as it is then; null when the studio has no such key
   * @throws UnreadableRecord, having written nothing
   */
  putApiKeyQuota(studioId: string, keyId: string, limit: number | null, by: AuditContext): Promise<ApiKey | null>;

  /** Keeps when a key was used, unless a use since another moment is kept already. */
  noteApiKeyUse(use: {
    readonly studioId: string;
    readonly keyId: string;
    readonly now: Date;
    readonly unlessSince: Date;
  }): Promise<void>;

  /**
   * The key with this secret and what it depends on; must see every change that was answered before. A key that cannot be
   * read opens nothing, a studio that cannot be read is suspended, a member that cannot be read has no role.
   *
   * @param sourceId what else to read of the key's studio; a UUID in lower case
   */
  findCredential(secretSha256: Uint8Array, sourceId?: string): Promise<Credential | null>;
}

/** A studio's record, as far as it is to change; what is undefined stays as it is. */
export interface StudioPut {
  readonly id: string;
  /** A studio that is not there yet needs one. */
  readonly status: Studio['status'] | undefined;
  readonly regionCode: RegionCode | null | undefined;
  readonly quotaLimit?: number | null | undefined;
}

/** What became of putting what a studio may have only so many of. */
export type PutOutcome = 'put' | 'no-studio' | 'limit-reached';

export interface DirectoryStore {
  /**
   * Creates a studio, or changes what is given, also of one that cannot be read; must leave its members and sources alone.
   * Another status or quota than before must be kept as an event in the same write, and so must the first ones. Must suspend a studio
   * that has no room for an event, too. Another region must begin a renewal of the claims (`renewalAfter`) in the same write.
   *
   * @returns the studio as it is then; null when there is none, and no status to make one with
   */
  putStudio(studio: StudioPut, by: AuditContext): Promise<Studio | null>;

  /** A studio's record; one that cannot be read is suspended, and has no region. */
  findStudio(studioId: string): Promise<Studio | null>;

  /**
   * Studios as findStudio tells them, lowest id first by the bytes of the id, at most `limit`; one whose id is none is passed
   * over.
   *
   * @param after only studios with a higher id than this; null: from the lowest
   */
  listStudios(after: string | null, limit: number): Promise<Page<Studio>>;

  /**
   * Creates or replaces a member. Must write nothing when there is no such studio, or when it would be one more than
   * MAX_MEMBERS, also when many are put at once; one that is there can be put whatever their number.
   */
  putMember(member: Member): Promise<PutOutcome>;

  /** A member; one whose role nobody knows is none. */
  findMember(studioId: string, memberId: string): Promise<Member | null>;

  /** Removes a member; answers who was removed, if anybody whose role is known. */
  removeMember(studioId: string, memberId: string): Promise<Member | null>;

  /** Creates or replaces a source; the same as of members must hold of sources and MAX_LEAD_SOURCES. */
  putLeadSource(source: LeadSource): Promise<PutOutcome>;

  /** Removes a source; answers which was removed, if any that can be read. */
  removeLeadSource(studioId: string, sourceId: string): Promise<LeadSource | null>;

  /** A source; one that cannot be read is none. */
  findLeadSource(studioId: string, sourceId: string): Promise<LeadSource | null>;

  /**
   * Sources of the studio that can be read, lowest id first, at most `limit`.
   *
   * @param after only sources with a higher id than this; null: from the lowest
   */
  listLeadSources(studioId: string, after: string | null, limit: number): Promise<Page<LeadSource>>;
}

/** A studio whose leads' claims are made anew. */
export interface StudioRenewal {
  readonly studio: Studio;
  readonly renewal: ClaimRenewal;
}

/** A lead, and what it claims, or is found by once it is closed. */
export interface ClaimingLead {
  readonly id: string;
  readonly contact: Contact;
  readonly isOpen: boolean;
  readonly claims: OpenClaims;
}

export interface ClaimRenewalStore {
  /**
   * Every studio whose leads' claims are to be made anew, by id; also those that a release wrote which knew the first
   * rule only: of these, everything is to be renewed. One of which it cannot be read how far it has come is left out.
   */
  listClaimRenewals(): Promise<StudioRenewal[]>;

  /**
   * What the next `limit` leads of a studio claim, lowest id first, and the id that the next such leads follow; null: there are no
   * more. One whose claims cannot be read is left out, and keeps them.
   *
   * @param after only leads with a higher id than this; null: from the lowest
   */
  listClaims(
    studioId: string,
    after: string | null,
    limit: number,
  ): Promise<{ readonly leads: ClaimingLead[]; readonly next: string | null }>;

  /**
   * Gives a lead other claims, and changes nothing else of it. Must write nothing unless it is still as open or closed as it was
   * read, has that contact, and claims that.
   * What another lead claims must stay that one's; the lead gets what is free.
   *
   * @returns the lead that has one of the claims; null when none has, or nothing was written
   */
  renewClaims(studioId: string, lead: ClaimingLead, claims: OpenClaims): Promise<string | null>;

  /**
   * Notes how far a renewal has come; null: there is none, or it is over. Must write nothing unless it still stands as it was read.
   *
   * @returns whether it was written
   */
  noteClaimRenewal(
    read: { readonly studio: Studio; readonly renewal: ClaimRenewal | null },
    next: ClaimRenewal | null,
  ): Promise<boolean>;
}

export interface AuditStore {
  /**
   * What was done to a studio and its keys, or to one of its leads; newest first, at most EVENTS_KEPT. Must tell what was
   * done to one of them in the order in which it was done. What cannot be read is passed over.
   *
   * @param leadId null: the studio and its keys
   */
  listAuditEvents(studioId: string, leadId: string | null): Promise<AuditEvent[]>;
}
