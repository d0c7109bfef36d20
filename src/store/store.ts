import type { ApiKey } from '../domain/api-key.ts';
import type { Actor, AuditContext, AuditEvent } from '../domain/audit.ts';
import type { Backfill, Consumer, NewConsumer } from '../domain/consumer.ts';
import type { ClaimsOfContact, OpenClaims, RegionCode } from '../domain/contact.ts';
import type { DatabaseEpoch } from '../domain/database-epoch.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import type { ErasedLead, Lead, LeadClaims, LeadStage } from '../domain/lead.ts';
import type { Acknowledgement, LeadChange, LeadSetAside, SetAside, Settled } from '../domain/lead-change.ts';
import type { Correction, OriginalFields } from '../domain/lead-data.ts';
import type { LeadFilter, TimeRange } from '../domain/lead-filter.ts';
import type { LoggedRequest } from '../domain/request-log.ts';
import type { LeadSource, Member, MemberRole, Studio } from '../domain/studio.ts';

/**
 * The store port. Each method is one atomic promise: it takes effect entirely or not at all, also when the process dies
 * half-way, when several processes call it concurrently, and when the response is lost. Resolved writes are durable.
 *
 * A method that cannot keep its promise now, or cannot know whether it did, rejects with StoreUnavailable. A write whose
 * response was lost must not be attempted again before it is known that it had no effect: an attempt must not undo what
 * others have written since an earlier one. `test/contract/store-contract.ts` tests every "must" below on every adapter.
 *
 * A change with a `requestId` takes effect once. While the identity is among those of the last MAX_APPLIED_REQUESTS
 * changes of the record (in SQLite, the last MAX_STORED_REQUESTS of all), a call with the same one must write
 * nothing, in any process, and returns the present state. A call that finds nothing to change must store the identity
 * all the same; a rejected change must not.
 *
 * The database may hold records that this release did not write, so every record is checked when it is read. An
 * unreadable one must affect no call except those for that very record, and what it blocks must stay blocked. A call
 * that skips it must report it.
 *
 * Throughout: lists are limited to `limit` records. `after` restricts a list to ids above it, and `before` to ids below
 * it; null starts at the end of the list. `next` is the id to continue after; null: there are no more.
 */
export interface Store
  extends LeadStore,
    LeadChangeStore,
    ConsumerStore,
    RestoreStore,
    LeadErasureStore,
    RetentionStore,
    ApiKeyStore,
    DirectoryStore,
    AuditStore,
    RequestLogStore {
  /**
   * Must resolve only if the store can read and write and every unique index was valid a second ago. Otherwise rejects with
   * StoreUnavailable, whose message and causes give the reason; of leads and keys they contain nothing but ids.
   */
  check(): Promise<void>;
  /** Closes the store after the writes in flight; may be called twice. */
  close(): Promise<void>;
}

/** The methods by which every record can be read, and those that are unreadable are reported. */
export type RecordReaders = Pick<
  Store,
  | 'listStudios'
  | 'findMember'
  | 'listLeadSources'
  | 'listLiveApiKeys'
  | 'listFormerApiKeys'
  | 'walkLeads'
  | 'walkErasedLeads'
  | 'listRequests'
  | 'listConsumers'
  | 'walkAuditEvents'
>;

/** The store is unavailable, it refused a command, or the outcome of a write is unknown. */
export class StoreUnavailable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'StoreUnavailable';
  }
}

type RecordKind = 'lead' | 'API key' | 'studio' | 'member' | 'lead source' | 'event' | 'consumer' | 'request';

/**
 * A stored record that this release cannot read, because another program, another release or a person wrote it. The
 * error identifies the record and the field, and never contains the field's value.
 */
export class UnreadableRecord extends Error {
  readonly kind: RecordKind;
  readonly studioId: string;
  readonly id: string;
  /** The first field that is missing, of the wrong type, or not a known value. */
  readonly field: string;

  constructor(kind: RecordKind, { studioId, id }: { readonly studioId: string; readonly id: string }, field: string) {
    super(`the ${kind} ${id} of studio ${studioId} cannot be read: ${field} is invalid`);
    this.name = 'UnreadableRecord';
    this.kind = kind;
    this.studioId = studioId;
    this.id = id;
    this.field = field;
  }
}

export type ReportUnreadable = (record: UnreadableRecord) => void;

export interface Page<Record> {
  readonly records: readonly Record[];
  readonly next: string | null;
  /** The number of unreadable records among those that it was read from. */
  readonly skipped: number;
}

export type CountedLead = Pick<Lead, 'id' | 'studioId' | 'stage' | 'sourceId' | 'createdAt' | 'updatedAt' | 'apiKeyId'>;

/** All that is kept of a lead. */
export interface LeadRecord {
  /** With its enquiries. */
  readonly lead: Lead;
  readonly idempotencyKey: string;
  /** What it was created with; null: that is not kept apart from the lead. */
  readonly original: OriginalFields | null;
}

export interface LeadsOfContact {
  readonly leads: readonly Lead[];
  readonly unreadable: readonly string[];
}

export interface StoreCommand {
  readonly name: 'commit' | 'find' | 'insert' | 'update';
  /** The number of reads or writes that it combines. */
  readonly size: number;
}

/** Gets the commands to the database that take long. */
export interface SlowCommands {
  readonly fromMs: number;
  /** @param shape the statement, or the collection, the method and the names in its filter: nothing that a caller sent */
  report(shape: string, durationMs: number): void;
}

/** Called when a command is sent to the database; returns what is called when it ends, with whether it succeeded. */
export type StoreObserver = (command: StoreCommand) => (isDone: boolean) => void;

/**
 * Who hears of each command to the database, of each unreadable record that a call skips, of each slow command, and when the log
 * of SQLite cannot be emptied because other processes read.
 */
export type StoreListeners = [
  observer?: StoreObserver,
  report?: ReportUnreadable,
  slow?: SlowCommands,
  logStays?: () => void,
];

export const LOG_STAYS =
  "the log of the database (-wal) may contain erased data, and grows: another process reads the database. End that process; a core or 'vacuum' then empties the log";

/**
 * The outcome of a creation. A replayed lead has the name, source and note that it was created with, and its current
 * contact and stage; an unreadable stage is replaced by the first one.
 */
export type CreateLeadOutcome =
  | { readonly kind: 'created'; readonly lead: Lead }
  | { readonly kind: 'replayed'; readonly lead: Lead }
  | { readonly kind: 'idempotency-conflict' }
  /** The idempotency key created a lead that has been erased since. */
  | { readonly kind: 'erased' }
  | { readonly kind: 'already-open'; readonly leadId: string };

/** The lead that an idempotency key created, as in CreateLeadOutcome, and the fingerprint of its data. */
export interface EarlierCreation {
  readonly lead: Lead;
  readonly fingerprint: Fingerprint;
}

/** An idempotency key whose lead was erased, its fingerprint included. */
export interface ErasedCreation {
  readonly kind: 'erased';
}

export type EraseLeadOutcome =
  /** `isNew`: by this call. */
  | { readonly kind: 'erased'; readonly lead: ErasedLead; readonly isNew: boolean }
  /** `stale`: the lead has changed since the expected time; nothing was written. */
  | { readonly kind: 'not-found' | 'stale' };

/** A lead and its revision in the change feed. */
export interface LeadState {
  readonly lead: Lead;
  readonly revision: number;
}

export type ChangeLeadStageOutcome =
  | ({ readonly kind: 'changed' | 'unchanged' } & LeadState)
  | { readonly kind: 'already-open'; readonly leadId: string }
  /** The lead has changed since the expected time; nothing was written. */
  | { readonly kind: 'not-found' | 'stale' }
  | { readonly kind: 'other-contact' };

/** The outcome of an update; `stale`: the lead has changed since the expected time. */
export type UpdateLeadOutcome =
  | ({ readonly kind: 'updated' | 'unchanged' } & LeadState)
  | { readonly kind: 'already-open'; readonly leadId: string }
  | { readonly kind: 'not-found' | 'stale' };

export interface LeadCommand extends AuditContext {
  readonly studioId: string;
  readonly leadId: string;
}

export interface LeadStageChange extends LeadCommand {
  readonly stage: LeadStage;
  /** What the lead claims when reopened, and is also found by when closed. */
  readonly claims: ClaimsOfContact;
  /** Null: any. */
  readonly expectedUpdatedAt: Date | null;
}

export interface LeadUpdate extends LeadCommand {
  readonly correction: Correction;
  /** Of the new contact. */
  readonly claims: OpenClaims;
  /** Null: any. */
  readonly expectedUpdatedAt: Date | null;
}

export interface LeadErasure extends LeadCommand {
  /** Returns `stale` if the lead's `updatedAt` differs; absent: any. */
  readonly expectedUpdatedAt?: Date;
}

export interface CreationOptions {
  /** When the creation's entry in the change feed begins; absent: at the lead's `createdAt`. */
  readonly now?: Date | undefined;
  readonly keepsEnquiry?: boolean | undefined;
  /** Who creates it, whom an event in the same write then names; absent: a visitor. */
  readonly by?: Actor | undefined;
}

export interface LeadStore {
  /**
   * createLead must store a new lead and its claims in one write. It must check in this order:
   *
   * 1. If the idempotency key has created a lead in the studio, returns `replayed` (same fingerprint),
   *    `idempotency-conflict` (another one) or `erased`.
   * 2. If the lead is open and another open lead of the studio has one of its contact keys, returns `already-open`.
   *    With `keepsEnquiry`, what it says is then kept at that lead as decideEnquiry decides: in one write, while that lead has the
   *    key, and once for each idempotency key that the lead remembers, in any process and however often it is repeated.
   *    The lead's fields stay; it is marked in the change feed. No other outcome may keep anything.
   *
   * Of any number of concurrent calls with one idempotency key, or with a contact key in common, exactly one must
   * create. The claims of an unreadable lead must stay taken.
   *
   * @throws UnreadableRecord when the lead of the idempotency key is unreadable
   */
  createLead(lead: Lead, claims: LeadClaims, options?: CreationOptions): Promise<CreateLeadOutcome>;

  /** Returns the lead that an idempotency key has created in the studio, changed or not. @throws UnreadableRecord */
  findLeadByIdempotencyKey(studioId: string, idempotencyKey: string): Promise<EarlierCreation | ErasedCreation | null>;

  /** Returns a lead of the studio, with its enquiries; must not return another studio's. @throws UnreadableRecord */
  findLead(studioId: string, leadId: string): Promise<Lead | null>;

  /** Returns all that is kept of a lead of the studio; null: it has none, or that was erased. */
  findLeadRecord(studioId: string, leadId: string): Promise<LeadRecord | 'unreadable' | null>;

  /**
   * Returns whether the studio has a lead with this id, erased or not, readable or not; null: it has none. Must not
   * tell of another studio's.
   */
  presenceOfLead(studioId: string, leadId: string): Promise<'present' | 'erased' | null>;

  /**
   * Lists the leads of the studio, highest id first, without their enquiries. Must skip unreadable ones, so that all others are reached. Only
   * after hundreds of those in a row may a page have fewer than `limit` leads and a `next`.
   *
   * With a filter, lists only leads that it matches, and examines some thousand of the studio's: a page may be short, or
   * empty, and have a `next`. If isByUpdate says so, they are in the order of `updatedAt` and id, highest first, and
   * `before` and `next` are positions of updatePosition. Of leads whose id does not begin with `createdAt`, a filter by
   * `created` may miss some.
   */
  listLeads(studioId: string, before: string | null, limit: number, filter?: LeadFilter): Promise<Page<Lead>>;

  /**
   * Lists as listLeads does, but lowest first, and with their enquiries. A walk must return each lead that existed at its
   * start exactly once. In the order of `updatedAt` it must return each lead that matches all the time at least once.
   */
  walkLeads(studioId: string, after: string | null, limit: number, filter?: LeadFilter): Promise<Page<Lead>>;

  /**
   * Lists what a count needs of the studio's leads, as listLeads does without a filter, but only of those in the filter's
   * range of `created`. What else of them cannot be read does not matter.
   */
  listLeadsToCount(
    studioId: string,
    before: string | null,
    limit: number,
    filter?: LeadFilter,
  ): Promise<Pick<Page<CountedLead>, 'records' | 'next'>>;

  /** Returns the number of the studio's leads in a stage, in the filter's range of `updated`, up to `bound`. */
  measureStage(studioId: string, stage: LeadStage, filter: LeadFilter | undefined, bound: number): Promise<number>;

  /**
   * Returns the leads of the studio with one of the contact keys: those claimed by open leads, and those that closed
   * leads had claimed, or would have claimed when they were last closed or corrected; with `former` those that had one before
   * a correction of their contact. Each lead once, in any order. Of more than MAX_LEADS_PER_CONTACT leads, must return
   * that many, open ones first. Must skip unreadable ones, but name them, and must not return another studio's.
   */
  findLeadsOfContact(studioId: string, contactKeys: readonly string[], former?: 'former'): Promise<LeadsOfContact>;

  /**
   * changeLeadStage must move a lead to a stage and store an event, in one write. It must check `expectedUpdatedAt`
   * first: returns `stale` if the lead's `updatedAt` differs. Returns `unchanged`, and writes
   * nothing, if the lead is in that stage already. `updatedAt` becomes `now`, but grows by a millisecond at least.
   *
   * - Closing must free the lead's claims in the same write; the lead is found by these and by the given ones from then
   *   on. Reopening must take the given ones in the same write; it returns `already-open`, and writes nothing, if
   *   another lead has one.
   * - A lead that stays open, or stays closed, must keep its contact keys.
   * - Closing or reopening a lead whose contact differs from `claims.contact` returns `other-contact` and writes
   *   nothing.
   *
   * @throws UnreadableRecord, without writing
   */
  changeLeadStage(change: LeadStageChange): Promise<ChangeLeadStageOutcome>;

  /**
   * updateLead must change some fields of a lead and store an event, in one write. It must check `expectedUpdatedAt`
   * first: returns `stale` if the lead's `updatedAt` differs. Returns `unchanged`, and writes nothing, if all values
   * are equal already. Otherwise `updatedAt` grows as in changeLeadStage.
   *
   * - A new contact of an open lead must free the old claims and take the new ones in the same write; it returns
   *   `already-open`, and writes nothing, if another lead has one.
   * - A new contact of a closed lead takes nothing; the lead is found by the new keys from then on.
   * - An unchanged contact keeps its claims.
   * - The first update must store what the lead was created with, for replays.
   *
   * @throws UnreadableRecord, without writing
   */
  updateLead(change: LeadUpdate): Promise<UpdateLeadOutcome>;

  /** Returns whether a change with this `requestId` has been applied to the lead. */
  isLeadChangeApplied(studioId: string, leadId: string, requestId: string): Promise<boolean>;
}

/**
 * The marks of the change feed. Every write of LeadStore that changes a lead must mark it in the same write and give it a higher
 * revision. A new lead is marked. ConsumerStore makes deliveries of the marks.
 */
export interface LeadChangeStore {
  /**
   * Marks some leads of a studio as if they had changed, for every consumer or for one. Must give each a new revision, so
   * that an earlier acknowledgement does not apply. A lead that cannot be marked must be reported, and not affect the others.
   *
   * @returns the number of leads that were marked, and of those that were not
   */
  resendLeads(leads: SomeLeads, now: Date, options?: ResendOptions): Promise<ResentLeads>;
}

/** The next `limit` leads of a studio, lowest id first, or some by their ids; erased ones too. Of these those that changed in a range. */
export type SomeLeads = { readonly studioId: string; readonly updated?: TimeRange | undefined } & (
  | { readonly after: string | null; readonly limit: number }
  | { readonly leadIds: readonly string[] }
);

export interface WaitingChanges {
  readonly leads: number;
  readonly since: Date | null;
}

/** `exists`: another consumer has the name. A repetition of the same creation is `created`, and changes nothing. */
export type CreateConsumerOutcome =
  | { readonly kind: 'created'; readonly consumer: Consumer }
  | { readonly kind: 'exists' | 'limit-reached' };

export interface ConsumerChanges {
  /** As it was once the changes were distributed. */
  readonly consumer: Consumer;
  readonly changes: readonly LeadChange[];
  /** Whether all changes were distributed; otherwise there may be others. */
  readonly isComplete: boolean;
}

/**
 * The consumers of the change feed: DEFAULT_CONSUMER, which is not stored, and those that are. Each has a delivery for each lead of
 * its studios that it has changes of to handle, which depends on no other consumer.
 *
 * The writers of leads know nothing of them. Whoever lists changes first distributes those that are marked: each becomes
 * a delivery for each consumer, and only once these are durable the mark is acknowledged. It must read the marks before the
 * consumers, and acknowledge a mark only at the revision and time that were read. So of each change that
 * resolved after a consumer's creation resolved, the consumer is sent that state or a later one until it acknowledges it,
 * whoever distributes, dies, or repeats what it did long ago. While many thousands are marked, a call may distribute only some, and
 * list none of the others.
 *
 * Changes of test studios go only to the consumers that include them.
 */
export interface ConsumerStore {
  /**
   * Distributes what is marked: a consumer that is created later is only sent later changes. Without that, it is also sent those that
   * are marked. A call distributes some; returns whether none was left.
   */
  distributeLeadChanges(): Promise<boolean>;

  /**
   * createConsumer must hold the limit MAX_CONSUMERS, and that of one consumer for a name, for concurrent calls. The name of
   * DEFAULT_CONSUMER is taken. A new one must be stored with an event in one write, and so removed.
   */
  createConsumer(consumer: NewConsumer, by: Actor): Promise<CreateConsumerOutcome>;

  /**
   * Returns the stored consumers, in the order of their creation; must see every change that resolved before the call. One that
   * cannot be read has a `fault`, and is reported. The changes of the others must not depend on it.
   */
  listConsumers(): Promise<Consumer[]>;

  /** Removes a consumer; what waits for it is then of nobody. */
  removeConsumer(number: Consumer['number'], by: AuditContext): Promise<void>;

  /** Removes some deliveries of consumers that were removed; returns whether there may be more. */
  removeOrphans(): Promise<boolean>;

  /** Replaces the backfills of a consumer; must change nothing, and return false, unless they are as they were read. */
  putBackfills(consumer: Consumer, backfills: readonly Backfill[]): Promise<boolean>;

  /** Returns the lowest id of a studio above one, readable or not; null: there is none. */
  findStudioAfter(studioId: string): Promise<string | null>;

  /**
   * Returns leads that a consumer has deliveries of, in their current state with their enquiries, which must be durable, and with
   * their current revision; null: it was removed. Leads are ordered by their first unacknowledged change, as far as the clocks of
   * the writers agree. Must skip any number of unreadable ones. Only after thousands of those may a call return none although
   * there are others, which later calls then return.
   *
   * An equal revision of a lead must come with an equal state and equal kinds, so a lead that has changed again since the
   * distribution is left to the next call.
   */
  listDeliveries(number: Consumer['number'], limit: number): Promise<ConsumerChanges | null>;

  /**
   * Ends the deliveries of a consumer whose revision is at most the given one, set aside or not. A distribution of the same
   * change that another process has begun must not bring them back.
   *
   * @param acknowledgements at most MAX_ACKNOWLEDGEMENTS
   */
  acknowledgeDeliveries(number: Consumer['number'], acknowledgements: readonly Acknowledgement[]): Promise<Settled>;

  /**
   * Sets deliveries aside that wait, and whose revision is at most the given one: they are not listed until they come again, by
   * themselves, by takeBackDeliveries, or because the lead changes.
   *
   * @param leads at most MAX_ACKNOWLEDGEMENTS
   */
  setAsideDeliveries(number: Consumer['number'], leads: readonly SetAside[], now: Date): Promise<Settled>;

  /** Has some deliveries that were set aside until now, or before, wait again. */
  returnDeferredDeliveries(number: Consumer['number'], now: Date): Promise<void>;

  /** Has deliveries wait again that were set aside; returns their number. @param leads at most MAX_ACKNOWLEDGEMENTS */
  takeBackDeliveries(number: Consumer['number'], leads: readonly LeadOfStudio[]): Promise<number>;

  /** Lists what a consumer has set aside, in the order of `due`. @param after null: from the start */
  listDeliveriesSetAside(
    number: Consumer['number'],
    after: Pick<LeadSetAside, 'due' | 'studioId' | 'leadId'> | null,
    limit: number,
  ): Promise<LeadSetAside[]>;

  /** Distributes changes, and counts what a consumer has to handle, up to `bound`. */
  measureDeliveries(number: Consumer['number'], bound: number): Promise<MeasuredDeliveries>;
}

/** A lead by its names. */
export type LeadOfStudio = Pick<Acknowledgement, 'studioId' | 'leadId'>;

export interface MeasuredDeliveries {
  /** Those that wait, or will by themselves; since the first change of one that waits. */
  readonly waiting: WaitingChanges;
  /** Those that do not come again by themselves; since the first of them was set aside. */
  readonly setAside: WaitingChanges;
  /** Whether all changes were distributed; otherwise more may wait. */
  readonly isComplete: boolean;
}

export interface RestoreStore {
  /** Returns which database this is. If that cannot be read, it was never restored, or all may be lost. */
  findEpoch(): Promise<DatabaseEpoch>;

  /** Notes that the database was restored, as epochAfterRestore decides, with an event in one write; returns its epoch from then on. */
  raiseEpoch(to: Date | null, now: Date, by: Actor): Promise<DatabaseEpoch>;

  /**
   * Returns those of some ids, in lower case, with which the studio has no lead: no erased or unreadable one either. Must see
   * every lead that was returned before the call, by any method.
   */
  findMissingLeads(studioId: string, leadIds: readonly string[]): Promise<string[]>;
}

export interface ResendOptions {
  /** The number of the consumer that is sent them; default: every consumer is. */
  readonly consumer?: number | undefined;
  /** Revisions are at least this; default: those of `now`. */
  readonly lowest?: number | undefined;
}

export interface ResentLeads {
  readonly leads: number;
  /** The number of leads that cannot be marked. */
  readonly skipped: number;
  readonly next: string | null;
}

export interface LeadErasureStore {
  /**
   * eraseLead must delete a lead's personal data in one write with its event: name, contact, source, note, enquiries, what
   * it was created with, and everything computed from these, including its claims. Id, idempotency key, times and stage
   * remain. From then on no other method may return the lead, its contact is free, and its idempotency key yields
   * `erased`. A lead of which only the stage and times are readable must be erased, too, whatever its other fields, its
   * events and its changes are. A lead that is erased already is returned unchanged.
   *
   * @throws UnreadableRecord when stage or times are unreadable, without writing
   */
  eraseLead(erasure: LeadErasure): Promise<EraseLeadOutcome>;

  /**
   * Deletes the next `limit` leads of a studio, lowest id first, with their claims, keys, events and deliveries. Only of a
   * test studio: no consumer hears of it. An event of the studio with their number is stored with it, or
   * before it.
   *
   * @returns the number of deleted leads; fewer than `limit`: there were no more
   */
  deleteLeads(studioId: string, limit: number, by: AuditContext): Promise<number>;

  /**
   * Deletes those of some leads of a studio that were erased at a time or before, with all that is kept of them. Must leave one whose
   * changes a stored consumer has not acknowledged, or may yet be sent, as far as they were there before the call. DEFAULT_CONSUMER does not
   * count: perhaps nobody ever acknowledges for it.
   *
   * @returns the number of deleted leads; fewer where a response was lost
   */
  deleteErasedLeads(studioId: string, leadIds: readonly string[], erasedUntil: Date): Promise<number>;

  /** Returns the leads among the next `limit` of a studio, lowest id first, that are not erased, readable or not. */
  walkUnerasedLeads(
    studioId: string,
    after: string | null,
    limit: number,
  ): Promise<{ readonly leads: readonly Pick<Lead, 'id'>[]; readonly next: string | null }>;

  /** Returns the erased leads among the next `limit` leads of a studio, lowest id first. Skips unreadable ones. */
  walkErasedLeads(
    studioId: string,
    after: string | null,
    limit: number,
  ): Promise<{ readonly leads: readonly ErasedLead[]; readonly next: string | null }>;
}

/** The methods that write leads. */
export type LeadWrites = Exclude<
  keyof LeadErasureStore | 'createLead' | 'changeLeadStage' | 'updateLead',
  `walk${string}`
>;

/** The time that retention goes by, which all cores share. */
export interface RetentionTime {
  /** Grows with each change. */
  readonly version: number;
  /** Null: it cannot be read. */
  readonly time: Date | null;
}

export interface RetentionStore {
  /** Returns null if there never was one. Must see every change that resolved before the call. */
  findRetentionTime(): Promise<RetentionTime | null>;

  /**
   * Replaces it. Must change nothing, and return false, unless it has the version that was read (null: there is none): of
   * concurrent calls exactly one changes it. Where a response was lost, it may return false for a change.
   */
  putRetentionTime(version: RetentionTime['version'] | null, time: Date): Promise<boolean>;
}

export interface ApiKeyCommand extends AuditContext {
  readonly studioId: string;
  readonly keyId: string;
}

/** It has no `requestId`: a repeated request would need the secret, which is not stored. */
export interface ApiKeyReplacement extends ApiKeyCommand {
  readonly memberId: string;
  readonly secretSha256: Uint8Array;
  readonly secretHint: string;
  readonly expiresAt: Date | null;
}

export type ReplaceApiKeyOutcome =
  | { readonly kind: 'replaced'; readonly key: ApiKey }
  | { readonly kind: 'not-found' | 'revoked' | 'expired' | 'limit-reached' };

/** Everything that decides what the bearer of a secret may do now. */
export interface Credential {
  readonly key: ApiKey;
  readonly studio: Studio;
  /** The issuer's role; null when the issuer is no longer a member. */
  readonly issuerRole: MemberRole | null;
  /** The requested source; null: none was requested, or the studio does not have it. */
  readonly source: LeadSource | null;
}

export interface ApiKeyStore {
  /**
   * createApiKey must store a new key and an event in one write, unless MAX_LIVE_KEYS keys of the studio are live at
   * `now`; the limit must hold for concurrent calls. An unreadable key counts as live until it is revoked, or its
   * expiry is readable and has passed. Returns whether the key was stored.
   */
  createApiKey(key: ApiKey, now: Date, by?: Omit<Actor, 'memberId'>): Promise<boolean>;

  /**
   * Returns the keys of the studio that hold one of its slots, highest id first, at most MAX_LIVE_KEYS. Every live key
   * must be among them; others may have expired. An unreadable key is returned as readablePartsOfKey shows it.
   */
  listLiveApiKeys(studioId: string): Promise<ApiKey[]>;

  /** Lists the other keys of the studio, highest id first; an unreadable one likewise. Skips those with an invalid id. */
  listFormerApiKeys(studioId: string, before: string | null, limit: number): Promise<Page<ApiKey>>;

  /**
   * replaceApiKey must give a key a new secret, a new issuer and, unless `expiresAt` is null, a new expiry, and store
   * an event, in one write. The old secret must be invalid when it resolves. A revoked key is not changed, nor one that
   * would be expired at `now`. An expired key that becomes live counts towards the limit like a new one.
   *
   * @throws UnreadableRecord, without writing
   */
  replaceApiKey(replacement: ApiKeyReplacement): Promise<ReplaceApiKeyOutcome>;

  /**
   * revokeApiKey must revoke a key, also an unreadable one, and store an event, in one write. A revoked key is returned
   * unchanged. Returns null when the studio has no such key.
   */
  revokeApiKey(studioId: string, keyId: string, by: AuditContext): Promise<ApiKey | null>;

  /**
   * putApiKeyQuota must set the quota of a key, or remove it (null), and nothing else. A changed quota must be stored
   * with an event in one write.
   *
   * @returns the key after the change; null when the studio has no such key
   * @throws UnreadableRecord, without writing
   */
  putApiKeyQuota(studioId: string, keyId: string, limit: number | null, by: AuditContext): Promise<ApiKey | null>;

  /**
   * Stores the time of a key's use, unless a use after `unlessSince` is stored already. A stored use after `now` must
   * be replaced: it was stored before a clock was set back.
   */
  recordApiKeyUse(use: {
    readonly studioId: string;
    readonly keyId: string;
    readonly now: Date;
    readonly unlessSince: Date;
  }): Promise<void>;

  /**
   * Returns the key with this secret and what its validity depends on; must see every change that resolved before the
   * call, but the time of the key's last use may be an earlier one. An unreadable key is not returned; an unreadable studio is suspended; an unreadable member has no role.
   *
   * @param sourceId a source of the key's studio to read as well; a UUID in lower case
   */
  findCredential(secretSha256: Uint8Array, sourceId?: string): Promise<Credential | null>;
}

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

/** What was done, where that is not one write. */
export type Act = Pick<AuditEvent, 'action'> & Partial<Pick<AuditEvent, 'from' | 'to'>>;

/** A part of all audit events. */
export interface AuditPart {
  readonly events: readonly AuditEvent[];
  /** Where to go on; null: there are no more. */
  readonly next: string | null;
}

export interface AuditStore {
  /**
   * Returns the next events of all studios and of the deployment whose time is in a range, perhaps none, at most 2,200. A walk must
   * return each event that is stored when it begins exactly once, and those of one record in their order. Skips unreadable ones.
   *
   * @param range without its end
   * @param after the `next` of the part before; null: from the start
   */
  walkAuditEvents(range: { readonly start: Date; readonly end: Date }, after: string | null): Promise<AuditPart>;

  /**
   * Stores an event of a studio, or of the deployment, before what it is about: writes of many records, of which none could have it. So
   * there may be one of what was not done, and never none of what was. Does nothing if there is no such studio.
   *
   * @param studioId OF_DEPLOYMENT: of none
   */
  recordAct(studioId: string, act: Act, by: AuditContext): Promise<void>;

  /**
   * Returns the events of a studio and its keys, of one of its leads, or of the deployment; newest first, at most MAX_AUDIT_EVENTS. Must
   * return the events of one record in the order in which they happened. Skips unreadable ones.
   *
   * @param studioId OF_DEPLOYMENT: those of no studio
   * @param leadId null: the studio and its keys
   */
  listAuditEvents(studioId: string, leadId: string | null): Promise<AuditEvent[]>;
}

export interface RequestLogStore {
  /** Stores requests by their ids. One whose id is stored already stays as it is, and does not affect the others. */
  recordRequests(requests: readonly LoggedRequest[]): Promise<void>;

  /** Lists the requests of a studio, highest id first. Skips unreadable ones. */
  listRequests(studioId: string, before: string | null, limit: number): Promise<Page<LoggedRequest>>;

  /**
   * Removes requests of a studio, readable or not: all but the newest ones of those whose ids are `since` or above; without
   * `kept` all.
   */
  removeRequests(studioId: string, kept?: { readonly since: string; readonly newest: number }): Promise<void>;
}
