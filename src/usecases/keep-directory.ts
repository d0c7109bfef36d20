import { crmIdFault, nameFault, pageTokenFault, uuidFault } from '../../common/rules/field-rules.ts';
import { type Repeatable, type Requester, requestIdentity } from '../domain/audit.ts';
import { isRegionCode, type RegionCode, type StudioRegions } from '../domain/contact.ts';
import { eachPage, idBeforePage, pageTokenAfter } from '../domain/cursor.ts';
import type { Clock } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import {
  type LeadSource,
  MAX_LEAD_SOURCES,
  MAX_MEMBERS,
  type Member,
  type MemberRole,
  quotaLimitFault,
  type Studio,
} from '../domain/studio.ts';
import type { DirectoryStore, PutOutcome } from '../store/store.ts';

interface DirectoryDependencies {
  readonly store: DirectoryStore;
}

interface TimedDependencies extends DirectoryDependencies {
  readonly clock: Clock;
}

/** A request to create or change a studio, not yet checked. */
export interface PutStudioCommand extends Requester {
  readonly id: string;
  /** Undefined: unknown. */
  readonly status: Studio['status'] | 'unchanged' | undefined;
  /** Null: removes the region; undefined: unchanged. */
  readonly regionCode: string | null | undefined;
  /** Null: the gateways' default; undefined: unchanged. */
  readonly quotaLimit?: number | null | undefined;
}

/** @throws Refusal INVALID_REQUEST, also if the studio does not exist and no status is given */
export async function putStudio(
  { store, clock }: TimedDependencies,
  command: PutStudioCommand | undefined,
): Promise<Studio> {
  const faults = new Faults();
  const idFault = crmIdFault(command?.id ?? '');
  faults.note('studio.id', idFault);
  // A studio with an invalid id does not exist, so it has no status to keep.
  const keepsStatus = command?.status === 'unchanged' && idFault === undefined;
  if (!keepsStatus && command?.status !== 'active' && command?.status !== 'suspended') {
    faults.note('studio.status', 'must be given');
  }
  const regionCode = command?.regionCode;
  if (typeof regionCode === 'string' && !isRegionCode(regionCode)) {
    faults.note('studio.regionCode', 'must be two capital letters of a region that has phone numbers');
  }
  if (typeof command?.quotaLimit === 'number') faults.note('studio.quotaLimit', quotaLimitFault(command.quotaLimit));
  if (command?.memberId !== undefined) faults.note('memberId', crmIdFault(command.memberId));
  noteRequestId(faults, command);
  faults.refuseIfAny();
  const { id, status, quotaLimit, memberId = null, caller } = command as PutStudioCommand;
  const put = {
    id,
    status: status === 'unchanged' ? undefined : status,
    regionCode: regionCode as RegionCode | null | undefined,
    quotaLimit,
  };
  const requestId = requestIdentity(command?.requestId, 'put studio', id);
  const studio = await store.putStudio(put, { memberId, caller, now: clock(), requestId });
  if (studio) return studio;
  faults.note('studio.status', 'must be given for a new studio');
  throw faults.refusal();
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export function getStudio({ store }: DirectoryDependencies, studioId: string): Promise<Studio> {
  return existingStudio(store, studioId, new Faults());
}

/** Who changes the members of a studio; not yet checked. */
interface MemberRequester extends Repeatable, Pick<Requester, 'caller'> {
  /** Undefined: no member is named. */
  readonly actingMemberId?: string | undefined;
}

/** A request to create or replace a member, not yet checked. */
export interface PutMemberCommand extends MemberRequester {
  readonly studioId: string;
  readonly id: string;
  readonly role: MemberRole | undefined;
}

/**
 * @returns the member as stored; null: the call is a repetition, and the member was removed since
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, DIRECTORY_LIMIT_REACHED
 */
export async function putMember(
  { store, clock }: TimedDependencies,
  command: PutMemberCommand | undefined,
): Promise<Member | null> {
  const faults = new Faults();
  faults.note('member.studioId', crmIdFault(command?.studioId ?? ''));
  faults.note('member.id', crmIdFault(command?.id ?? ''));
  if (!command?.role) faults.note('member.role', 'must be given');
  noteActingMember(faults, command);
  noteRequestId(faults, command);
  faults.refuseIfAny();
  const { studioId, id, role, actingMemberId: memberId = null, caller } = command as PutMemberCommand & Member;
  const requestId = requestIdentity(command?.requestId, 'put member', studioId, id);
  const by = { memberId, caller, now: clock(), requestId };
  refuseUnlessPut(await store.putMember({ studioId, id, role }, by), `${MAX_MEMBERS} members`);
  return requestId === undefined ? { studioId, id, role } : store.findMember(studioId, id);
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export async function removeMember(
  { store, clock }: TimedDependencies,
  command: MemberRequester & { readonly studioId: string; readonly memberId: string },
): Promise<Member | null> {
  const { studioId, memberId, actingMemberId = null, caller } = command;
  const faults = new Faults();
  faults.note('memberId', crmIdFault(memberId));
  noteActingMember(faults, command);
  noteRequestId(faults, command);
  await existingStudio(store, studioId, faults);
  const requestId = requestIdentity(command.requestId, 'remove member', studioId, memberId);
  return store.removeMember(studioId, memberId, { memberId: actingMemberId, caller, now: clock(), requestId });
}

/** Returns, and throws, as putMember does. */
export async function putLeadSource(
  { store }: DirectoryDependencies,
  command: (LeadSource & Repeatable) | undefined,
): Promise<LeadSource | null> {
  const faults = new Faults();
  faults.note('leadSource.studioId', crmIdFault(command?.studioId ?? ''));
  faults.note('leadSource.id', uuidFault(command?.id ?? ''));
  faults.note('leadSource.name', nameFault(command?.name ?? ''));
  noteRequestId(faults, command);
  faults.refuseIfAny();
  const { studioId, name, enabled, ...given } = command as LeadSource & Repeatable;
  const id = given.id.toLowerCase();
  const source = { studioId, id, name, enabled };
  const requestId = requestIdentity(given.requestId, 'put lead source', studioId, id);
  refuseUnlessPut(await store.putLeadSource(source, { requestId }), `${MAX_LEAD_SOURCES} sources`);
  return requestId === undefined ? source : store.findLeadSource(studioId, id);
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export async function removeLeadSource(
  { store }: DirectoryDependencies,
  { studioId, sourceId, requestId }: Repeatable & { readonly studioId: string; readonly sourceId: string },
): Promise<LeadSource | null> {
  const faults = new Faults();
  faults.note('leadSourceId', uuidFault(sourceId));
  noteRequestId(faults, { requestId });
  await existingStudio(store, studioId, faults);
  const id = sourceId.toLowerCase();
  const identity = requestIdentity(requestId, 'remove lead source', studioId, id);
  return store.removeLeadSource(studioId, id, { requestId: identity });
}

/** A request for one page of lead sources, not yet checked. */
export interface ListLeadSourcesQuery {
  readonly studioId: string;
  /** 0 or above the maximum: the maximum. */
  readonly pageSize: number;
  /** Empty: the first page. */
  readonly pageToken: string;
}

/**
 * Lists a studio's lead sources, by id. A page of the maximum size has all that a studio can have.
 *
 * @returns one page; the token is empty on the last one
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function listLeadSources(
  { store }: DirectoryDependencies,
  { studioId, pageSize, pageToken }: ListLeadSourcesQuery,
): Promise<{ readonly sources: readonly LeadSource[]; readonly nextPageToken: string }> {
  const after = pageToken === '' ? null : idBeforePage('sources', studioId, pageToken);
  const faults = new Faults();
  faults.note('pageSize', pageSize < 0 ? 'must not be negative' : undefined);
  if (after === undefined) faults.note('pageToken', pageTokenFault(pageToken) ?? 'must be unchanged, from this studio');
  await existingStudio(store, studioId, faults);
  const limit = Math.min(pageSize || MAX_LEAD_SOURCES, MAX_LEAD_SOURCES);
  const { records: sources, next } = await store.listLeadSources(studioId, after ?? null, limit);
  return { sources, nextPageToken: next === null ? '' : pageTokenAfter('sources', studioId, next) };
}

/** Returns all lead sources of a studio. @throws as listLeadSources does */
export async function listEveryLeadSource(deps: DirectoryDependencies, studioId: string): Promise<LeadSource[]> {
  const pages = eachPage((pageToken) => listLeadSources(deps, { studioId, pageSize: 0, pageToken }));
  return (await Array.fromAsync(pages)).flatMap(({ sources }) => sources);
}

/**
 * Reads a studio.
 *
 * @param faults those of the request so far
 * @throws Refusal INVALID_REQUEST with `faults` and a fault of the id, STUDIO_NOT_FOUND
 */
export async function existingStudio(
  store: Pick<DirectoryStore, 'findStudio'>,
  studioId: string,
  faults: Faults,
): Promise<Studio> {
  faults.note('studioId', crmIdFault(studioId));
  faults.refuseIfAny();
  const studio = await store.findStudio(studioId);
  if (!studio) throw studioNotFound();
  return studio;
}

/** Returns the regions of a studio; an unknown one has none. */
export async function regionsOf(store: Pick<DirectoryStore, 'findStudio'>, studioId: string): Promise<StudioRegions> {
  return (await store.findStudio(studioId)) ?? { regionCode: null, formerRegions: [] };
}

function noteActingMember(faults: Faults, command: MemberRequester | undefined): void {
  if (command?.actingMemberId !== undefined) faults.note('actingMemberId', crmIdFault(command.actingMemberId));
}

function noteRequestId(faults: Faults, command: Repeatable | undefined): void {
  if (command?.requestId !== undefined) faults.note('requestId', uuidFault(command.requestId));
}

function refuseUnlessPut(outcome: PutOutcome, limit: string): void {
  if (outcome === 'no-studio') throw studioNotFound();
  if (outcome === 'limit-reached') throw new Refusal('DIRECTORY_LIMIT_REACHED', `The studio has ${limit}.`);
}

const studioNotFound = () => new Refusal('STUDIO_NOT_FOUND', 'There is no such studio.');
