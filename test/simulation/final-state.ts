import { setTimeout as sleep } from 'node:timers/promises';
import { MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import type { Lead } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { LeadStage } from '../../src/domain/lead.ts';
import type { EventOf, SentLead } from './history.ts';
import { lookAtLeads, toContact, toStage } from './scenarios/operations.ts';
import { sendRequest } from './scenarios/requests.ts';
import type { KnownStudio, Simulation } from './simulation.ts';

/** The maximum number of attempts to get the outcome of a request. */
const MAX_ATTEMPTS = 12;

/** The number of concurrent repetitions. */
const AT_ONCE = 8;

/** A lead in its final state. */
export interface FinalLead {
  readonly id: string;
  readonly idempotencyKey: string;
  readonly displayName: string;
  readonly contact: SentLead['contact'];
  readonly sourceId: string | undefined;
  readonly note: string;
  readonly stage: LeadStage;
  /** Oldest first. */
  readonly enquiries: readonly FinalEnquiry[];
}

/** The data of a creation that was refused because of a lead. */
export type FinalEnquiry = Pick<FinalLead, 'displayName' | 'sourceId' | 'note'>;

/**
 * After the last disturbance, repeats each creation that was ever sent until it has an outcome, then reads all leads of all
 * studios.
 */
export async function readFinalState(sim: Simulation): Promise<ReadonlyMap<string, readonly FinalLead[]>> {
  await sim.untilServed();
  const found = new Map<string, FinalLead[]>();
  for (const studio of sim.studios) {
    const creations = creationsIn(sim, studio);
    if (creations.length === 0 && studio.leadIds.length === 0) continue;
    const secret = await openStudio(sim, studio);
    const waiting = creations.values();
    const repeat = async () => {
      for (const lead of waiting) await settle(sim, studio, secret, lead);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, repeat));
    const listed = await lookAtLeads(sim, studio, sim.crmAt(0), Number.POSITIVE_INFINITY);
    const exported = (await Array.fromAsync(sim.crmAt(0).leads.exportLeads({ studioId: studio.id }))).flatMap(
      ({ leads }) => leads,
    );
    if (exported.length !== listed.length)
      sim.history.fail(`${studio.id} lists ${listed.length} leads, and exports ${exported.length}`);
    found.set(studio.id, exported.toReversed().map(finalLead));
    await expectFound(sim, studio, listed);
  }
  return found;
}

/** Checks that each lead is found by its contact. */
async function expectFound(sim: Simulation, { id: studioId }: KnownStudio, leads: readonly Lead[]): Promise<void> {
  for (const [value, same] of Map.groupBy(leads, (lead) => toContact(lead).value)) {
    const contact = { value: { case: toContact(same[0] as Lead).type, value } };
    const { leads: found } = await sim.crmAt(0).leads.findLeads({ studioId, contact, pageSize: 100 });
    const missing = same.filter(({ id }) => !found.some((each) => each.id === id));
    if (missing.length > 0 && found.length < 100)
      sim.history.fail(`${missing.map(({ id }) => id).join(', ')} of ${studioId} is not found by the contact ${value}`);
  }
}

/** Returns each distinct creation that was sent. */
function creationsIn({ history }: Simulation, { id }: KnownStudio): SentLead[] {
  const sent = history
    .of('request')
    .filter((request) => request.studioId === id)
    .flatMap(({ operation }) => (operation.name === 'create' ? [operation.lead] : []));
  return [...new Map(sent.map((lead) => [JSON.stringify(lead), lead])).values()];
}

/** Makes a studio accept requests again, and returns the secret of a valid key. Disables the sources of every second studio. */
async function openStudio(sim: Simulation, studio: KnownStudio): Promise<string> {
  const { id: studioId } = studio;
  const { directory, apiKeys } = sim.crmAt(0);
  await directory.putStudio({
    studio: { id: studioId, status: StudioStatus.ACTIVE },
    updateMask: { paths: ['status'] },
  });
  sim.put(`status of ${studioId}`, 'active');
  // With a disabled source, a creation gets its replay or a refusal.
  for (const id of sim.studios.indexOf(studio) % 2 === 0 ? studio.sourceIds : []) {
    await directory.putLeadSource({ leadSource: { studioId, id, name: 'Form', enabled: false } });
    sim.put(`source ${id} of ${studioId}`, 'disabled');
  }
  const memberId = 'at-last';
  await directory.putMember({ member: { studioId, id: memberId, role: MemberRole.OWNER } });
  sim.put(`role of ${memberId} in ${studioId}`, 'owner');
  const { apiKeys: keys } = await apiKeys.listApiKeys({ studioId, memberId });
  const living = keys.filter(({ revokeTime }) => revokeTime === undefined);
  // A studio may have 20 keys that are not revoked.
  if (living.length >= 20) await apiKeys.revokeApiKey({ studioId, memberId, apiKeyId: living[0]?.id ?? '' });
  return sim.makeKey(studio, memberId);
}

/** Repeats a creation until it has an outcome. */
async function settle(sim: Simulation, studio: KnownStudio, secret: string, lead: SentLead): Promise<void> {
  let last: EventOf<'request'>['answer'];
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    last = await sendRequest(sim, studio, secret, sim.world.urls[0] as string, { name: 'create', lead });
    if (last && last.status !== 429 && last.status !== 503) return;
    await sleep(1000 * Number(last?.headers.get('retry-after') ?? 0.1));
  }
  sim.history.fail(
    `${lead.idempotencyKey} in ${studio.id}, repeated ${MAX_ATTEMPTS} times, gets ${last ? `${last.status} ${last.code}` : 'no response'}`,
  );
}

export function finalLead(lead: Lead): FinalLead {
  const { id, displayName, sourceId, note = '' } = lead;
  return {
    id,
    idempotencyKey: note.split(' ', 1).join(),
    displayName,
    contact: toContact(lead),
    sourceId,
    note,
    stage: toStage(lead),
    enquiries: lead.enquiries.map(({ displayName, sourceId, note = '' }) => ({ displayName, sourceId, note })),
  };
}
