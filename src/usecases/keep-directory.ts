import type { Clock } from '../domain/clock.ts';
import { isRegionCode, type RegionCode } from '../domain/contact.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { crmIdFault, nameFault, uuidFault } from '../domain/rules/field-rules.ts';
import type { LeadSource, Member, MemberRole, Studio } from '../domain/studio.ts';
import type { DirectoryStore } from '../store/store.ts';

interface Dependencies {
  readonly store: DirectoryStore;
}

/** What of a studio's record is to change, not yet checked, and who puts it. */
export interface PutStudioCommand {
  readonly id: string;
  /** Undefined: one that nobody knows. */
  readonly status: Studio['status'] | 'as it is' | undefined;
  /** Null: nobody knows the region any more; undefined: as it is. */
  readonly regionCode: string | null | undefined;
  readonly memberId?: string | undefined;
}

/** @throws Refusal INVALID_REQUEST, also when there is no such studio yet and no status is given */
export async function putStudio(
  { store, clock }: Dependencies & { readonly clock: Clock },
  command: PutStudioCommand | undefined,
): Promise<Studio> {
  const faults = new Faults();
  const idFault = crmIdFault(command?.id ?? '');
  faults.note('studio.id', idFault);
  // What cannot be there has no status to keep.
  const keepsStatus = command?.status === 'as it is' && idFault === undefined;
  if (!keepsStatus && command?.status !== 'active' && command?.status !== 'suspended') {
    faults.note('studio.status', 'must be given');
  }
  const regionCode = command?.regionCode;
  if (typeof regionCode === 'string' && !isRegionCode(regionCode)) {
    faults.note('studio.regionCode', 'must be two capital letters of a region that has phone numbers');
  }
  if (command?.memberId !== undefined) faults.note('memberId', crmIdFault(command.memberId));
  faults.refuseIfAny();
  const { id, status, memberId = null } = command as PutStudioCommand;
  const put = {
    id,
    status: status === 'as it is' ? undefined : status,
    regionCode: regionCode as RegionCode | null | undefined,
  };
  const studio = await store.putStudio(put, { memberId, now: clock() });
  if (studio) return studio;
  faults.note('studio.status', 'must be given for a new studio');
  throw faults.refusal();
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export function getStudio({ store }: Dependencies, studioId: string): Promise<Studio> {
  return existingStudio(store, studioId, new Faults());
}

/** A member, not yet checked. */
export interface PutMemberCommand {
  readonly studioId: string;
  readonly id: string;
  readonly role: MemberRole | undefined;
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export async function putMember({ store }: Dependencies, command: PutMemberCommand | undefined): Promise<Member> {
  const faults = new Faults();
  faults.note('member.studioId', crmIdFault(command?.studioId ?? ''));
  faults.note('member.id', crmIdFault(command?.id ?? ''));
  if (!command?.role) faults.note('member.role', 'must be given');
  faults.refuseIfAny();
  const member = command as Member;
  if (!(await store.putMember(member))) throw studioNotFound();
  return member;
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export async function removeMember(
  { store }: Dependencies,
  { studioId, memberId }: { readonly studioId: string; readonly memberId: string },
): Promise<Member | null> {
  const faults = new Faults();
  faults.note('memberId', crmIdFault(memberId));
  await existingStudio(store, studioId, faults);
  return store.removeMember(studioId, memberId);
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export async function putLeadSource({ store }: Dependencies, command: LeadSource | undefined): Promise<LeadSource> {
  const faults = new Faults();
  faults.note('leadSource.studioId', crmIdFault(command?.studioId ?? ''));
  faults.note('leadSource.id', uuidFault(command?.id ?? ''));
  faults.note('leadSource.name', nameFault(command?.name ?? ''));
  faults.refuseIfAny();
  const source = { ...(command as LeadSource), id: (command as LeadSource).id.toLowerCase() };
  if (!(await store.putLeadSource(source))) throw studioNotFound();
  return source;
}

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND */
export async function listLeadSources({ store }: Dependencies, studioId: string): Promise<LeadSource[]> {
  await existingStudio(store, studioId, new Faults());
  return store.listLeadSources(studioId);
}

/** @throws Refusal INVALID_REQUEST with what was noted before, too, STUDIO_NOT_FOUND */
export async function existingStudio(store: DirectoryStore, studioId: string, faults: Faults): Promise<Studio> {
  faults.note('studioId', crmIdFault(studioId));
  faults.refuseIfAny();
  const studio = await store.findStudio(studioId);
  if (!studio) throw studioNotFound();
  return studio;
}

const studioNotFound = () => new Refusal('STUDIO_NOT_FOUND', 'There is no such studio.');
