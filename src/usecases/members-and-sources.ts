import { crmIdFault, nameFault, uuidFault } from '../../common/rules/field-rules.ts';
import { type CallingProgram, type Repeatable, type Requester, requestIdentity } from '../domain/audit.ts';
import { eachPage, idBeforePage } from '../domain/cursor.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { type LeadSource, MAX_LEAD_SOURCES, MAX_MEMBERS, type Member, type MemberRole } from '../domain/studio.ts';
import type { PutOutcome } from '../store/port/directory.ts';
import type { Changing, Reading } from './dependencies.ts';
import { noteRequester, type PageQuery, requestedBy, startOfPage, tokenAfter } from './requests.ts';
import { existingStudio } from './studios.ts';

/** The unchecked requester of a change to a studio's members. */
interface MemberRequester extends CallingProgram, Repeatable {
  /** Undefined: the request names no member. */
  readonly actingMemberId?: string | undefined;
}

export interface PutMemberCommand extends MemberRequester {
  readonly studioId: string;
  readonly id: string;
  readonly role: MemberRole | undefined;
}

/**
 * @returns the stored member; null: this is a repetition, and the member has been removed since
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, STUDIO_ENDED, DIRECTORY_LIMIT_REACHED
 */
export async function putMember(
  { store, clock }: Changing,
  command: PutMemberCommand | undefined,
): Promise<Member | null> {
  const faults = new Faults();
  faults.note('member.studioId', crmIdFault(command?.studioId ?? ''));
  faults.note('member.id', crmIdFault(command?.id ?? ''));
  if (!command?.role) faults.note('member.role', 'must be given');
  noteMemberRequester(faults, command);
  faults.refuseIfAny();
  const { studioId, id, role, actingMemberId: memberId, ...requester } = command as PutMemberCommand & Member;
  const requestId = requestIdentity(command?.requestId, 'put member', studioId, id);
  const by = requestedBy({ ...requester, memberId }, clock, requestId);
  refuseUnlessPut(await store.putMember({ studioId, id, role }, by), `${MAX_MEMBERS} members`);
  return requestId === undefined ? { studioId, id, role } : store.findMember(studioId, id);
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export async function removeMember(
  { store, clock }: Changing,
  command: MemberRequester & { readonly studioId: string; readonly memberId: string },
): Promise<Member | null> {
  const { studioId, memberId, actingMemberId } = command;
  const faults = new Faults();
  faults.note('memberId', crmIdFault(memberId));
  noteMemberRequester(faults, command);
  await existingStudio(store, studioId, faults);
  const requestId = requestIdentity(command.requestId, 'remove member', studioId, memberId);
  const by = requestedBy({ ...command, memberId: actingMemberId }, clock, requestId);
  return store.removeMember(studioId, memberId, by);
}

/** Returns, and throws, as putMember does. */
export async function putLeadSource(
  { store, clock }: Changing,
  command: (LeadSource & Requester) | undefined,
): Promise<LeadSource | null> {
  const faults = new Faults();
  faults.note('leadSource.studioId', crmIdFault(command?.studioId ?? ''));
  faults.note('leadSource.id', uuidFault(command?.id ?? ''));
  faults.note('leadSource.name', nameFault(command?.name ?? ''));
  noteRequester(faults, command ?? {});
  faults.refuseIfAny();
  const { studioId, name, enabled, ...given } = command as LeadSource & Requester;
  const id = given.id.toLowerCase();
  const source = { studioId, id, name, enabled };
  const requestId = requestIdentity(given.requestId, 'put lead source', studioId, id);
  refuseUnlessPut(
    await store.putLeadSource(source, requestedBy(given, clock, requestId)),
    `${MAX_LEAD_SOURCES} sources`,
  );
  return requestId === undefined ? source : store.findLeadSource(studioId, id);
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export async function removeLeadSource(
  { store, clock }: Changing,
  command: Requester & { readonly studioId: string; readonly sourceId: string },
): Promise<LeadSource | null> {
  const { studioId, sourceId, requestId } = command;
  const faults = new Faults();
  faults.note('leadSourceId', uuidFault(sourceId));
  noteRequester(faults, command);
  await existingStudio(store, studioId, faults);
  const id = sourceId.toLowerCase();
  const identity = requestIdentity(requestId, 'remove lead source', studioId, id);
  return store.removeLeadSource(studioId, id, requestedBy(command, clock, identity));
}

/**
 * Lists a studio's lead sources, by id. A page of the maximum size has all that a studio can have.
 *
 * @returns one page; the token is empty on the last one
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function listLeadSources(
  { store }: Reading,
  { studioId, ...page }: PageQuery & { readonly studioId: string },
): Promise<{ readonly sources: readonly LeadSource[]; readonly nextPageToken: string }> {
  const faults = new Faults();
  const after = startOfPage(faults, page, (token) => idBeforePage('sources', studioId, token));
  await existingStudio(store, studioId, faults);
  const limit = Math.min(page.pageSize || MAX_LEAD_SOURCES, MAX_LEAD_SOURCES);
  const { records: sources, next } = await store.listLeadSources(studioId, after, limit);
  return { sources, nextPageToken: tokenAfter('sources', studioId, next) };
}

/** Returns all lead sources of a studio. @throws as listLeadSources does */
export async function listEveryLeadSource(deps: Reading, studioId: string): Promise<LeadSource[]> {
  const pages = eachPage((pageToken) => listLeadSources(deps, { studioId, pageSize: 0, pageToken }));
  return (await Array.fromAsync(pages)).flatMap(({ sources }) => sources);
}

function refuseUnlessPut(outcome: PutOutcome, limit: string): void {
  if (outcome === 'no-studio') throw new Refusal('STUDIO_NOT_FOUND');
  if (outcome === 'ended') throw new Refusal('STUDIO_ENDED');
  if (outcome === 'limit-reached') throw new Refusal('DIRECTORY_LIMIT_REACHED', `The studio has ${limit}.`);
}

function noteMemberRequester(faults: Faults, { actingMemberId, requestId }: MemberRequester = {}): void {
  noteRequester(faults, { memberId: actingMemberId, requestId }, 'actingMemberId');
}
