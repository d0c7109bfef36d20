import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ConnectError } from '@connectrpc/connect';
import fc from 'fast-check';
import { ErrorInfoSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';
import { type ApiKey, ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { type Lead, LeadStage, LeadView } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { LEAD_STAGES, type LeadStage as Stage } from '../../../src/domain/lead.ts';
import { DAY_MS } from '../../support/builders.ts';
import type { CoreClients } from '../../support/core-clients.ts';
import { REGIONS } from '../contacts.ts';
import { now } from '../history.ts';
import { CRM_TIMEOUT, type KnownStudio, type Simulation } from '../simulation.ts';
import * as actions from './actions.ts';
import { keyOf, mostlyFirst, newest, one, recent, studio, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';

const core = fc.nat(1);

/** Performs an action of the CRM by a call. */
const byRpc = <T>(call: () => Promise<T>): actions.Attempt<T> => ({ party: 'CRM', perform: () => outcomeOf(call()) });

export async function outcomeOf<T>(call: Promise<T>): Promise<actions.Outcome<T>> {
  try {
    return { answer: await call };
  } catch (error) {
    const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
    if (info?.domain !== 'leadintake') return { unknown: String(error) };
    return { refused: info.reason, leadId: info.metadata.leadId };
  }
}

const STAGE_NUMBERS: Readonly<Record<Stage, LeadStage>> = {
  new: LeadStage.NEW,
  contacted: LeadStage.CONTACTED,
  trial_booked: LeadStage.TRIAL_BOOKED,
  trial_attended: LeadStage.TRIAL_ATTENDED,
  won: LeadStage.WON,
  lost: LeadStage.LOST,
};

export const stageOf = ({ stage }: Lead): Stage =>
  Object.entries(STAGE_NUMBERS).find(([, number]) => number === stage)?.[0] as Stage;

/** The CRM moves a lead. */
export const move = aScenario({
  weight: 14,
  choice: fc.record({
    studio,
    lead: recent,
    stage: fc.oneof(fc.constantFrom(...LEAD_STAGES), fc.constantFrom('won', 'won', 'new')),
    core,
  }),
  async run(sim, { studio, lead, stage, core }) {
    const { id: studioId, leadIds } = studioAt(sim, studio);
    const leadId = newest(leadIds, lead);
    if (leadId === undefined) return;
    const request = { studioId, leadId, stage: STAGE_NUMBERS[stage as Stage] };
    await actions.move(
      sim,
      { studioId, leadId, stage: stage as Stage },
      byRpc(() => sim.crmAt(core).leads.changeLeadStage(request, CRM_TIMEOUT)),
    );
  },
});

/** The CRM lists the newest leads of a studio. */
export const look = aScenario({
  weight: 4,
  choice: fc.record({ studio, core }),
  async run(sim, { studio, core }) {
    await lookAtLeads(sim, studioAt(sim, studio), sim.crmAt(core), 1).catch(() => {});
  },
});

/** Lists a studio's leads through the core, and records the state of each. */
export async function lookAtLeads(
  sim: Simulation,
  { id: studioId }: Pick<KnownStudio, 'id'>,
  { leads }: CoreClients,
  pages: number,
) {
  const found: Lead[] = [];
  let pageToken = '';
  for (let page = 0; page < pages; page += 1) {
    const begin = now();
    const answer = await leads.listLeads({ studioId, pageSize: 100, pageToken, view: LeadView.FULL }, CRM_TIMEOUT);
    const span = { begin, end: now() };
    for (const lead of answer.leads) {
      sim.history.add({ kind: 'leadRead', party: 'CRM', studioId, leadId: lead.id, stage: stageOf(lead), span });
    }
    found.push(...answer.leads);
    pageToken = answer.nextPageToken;
    if (pageToken === '') break;
  }
  return found;
}

/** A studio is suspended or reactivated. */
export const suspendStudio = aScenario({
  weight: 2,
  choice: fc.record({ studio, status: fc.constantFrom('suspended', 'active', 'active'), core }),
  async run(sim, { studio, status, core }) {
    const { id } = studioAt(sim, studio);
    const number = status === 'active' ? StudioStatus.ACTIVE : StudioStatus.SUSPENDED;
    const request = { studio: { id, status: number }, updateMask: { paths: ['status'] } };
    const call = () => sim.crmAt(core).directory.putStudio(request, CRM_TIMEOUT);
    await actions.put(sim, `status of ${id}`, status, byRpc(call));
  },
});

/** A studio gets another region. */
export const moveStudio = aScenario({
  weight: 2,
  choice: fc.record({ studio, region: fc.constantFrom(...REGIONS), core }),
  async run(sim, { studio, region, core }) {
    const { id } = studioAt(sim, studio);
    const regionCode = region === 'none' ? {} : { regionCode: region };
    const request = { studio: { id, status: StudioStatus.UNSPECIFIED, ...regionCode } };
    const updateMask = { paths: ['region_code'] };
    const call = () => sim.crmAt(core).directory.putStudio({ ...request, updateMask }, CRM_TIMEOUT);
    await actions.put(sim, `region of ${id}`, region, byRpc(call));
  },
});

const ROLES = { owner: MemberRole.OWNER, admin: MemberRole.ADMIN, staff: MemberRole.STAFF } as const;

/** A member gets another role, or leaves. */
export const changeRole = aScenario({
  weight: 2,
  choice: fc.record({
    studio,
    member: fc.nat(1),
    role: fc.constantFrom('owner', 'owner', 'admin', 'staff', 'gone'),
    core,
  }),
  async run(sim, { studio, member, role, core }) {
    const { id: studioId, memberIds } = studioAt(sim, studio);
    const id = one(memberIds, member);
    const { directory } = sim.crmAt(core);
    const call = (): Promise<unknown> =>
      role === 'gone'
        ? directory.removeMember({ studioId, memberId: id }, CRM_TIMEOUT)
        : directory.putMember({ member: { studioId, id, role: ROLES[role as keyof typeof ROLES] } }, CRM_TIMEOUT);
    await actions.put(sim, `role of ${id} in ${studioId}`, role, byRpc(call));
  },
});

/** A source is disabled, enabled, or removed. */
export const changeSource = aScenario({
  weight: 2,
  choice: fc.record({
    studio,
    source: fc.nat(1),
    state: fc.constantFrom('enabled', 'enabled', 'disabled', 'gone'),
    core,
  }),
  async run(sim, { studio, source, state, core }) {
    const { id: studioId, sourceIds } = studioAt(sim, studio);
    const id = one(sourceIds, source);
    const { directory } = sim.crmAt(core);
    const call = (): Promise<unknown> =>
      state === 'gone'
        ? directory.removeLeadSource({ studioId, leadSourceId: id }, CRM_TIMEOUT)
        : directory.putLeadSource(
            { leadSource: { studioId, id, name: 'Form', enabled: state === 'enabled' } },
            CRM_TIMEOUT,
          );
    await actions.put(sim, `source ${id} of ${studioId}`, state, byRpc(call));
  },
});

/** A key is created. */
export const makeKey = aScenario({
  weight: 1,
  choice: fc.record({ studio, member: fc.nat(1), scopes: fc.constantFrom('both', 'both', 'read', 'create'), core }),
  async run(sim, { studio, member, scopes, core }) {
    const known = studioAt(sim, studio);
    const { id: studioId, memberIds } = known;
    const [mayRead, mayCreate] = [scopes !== 'create', scopes !== 'read'];
    const memberId = one(memberIds, member);
    const request = {
      studioId,
      memberId,
      name: 'Website',
      scopes: [...(mayRead ? [ApiKeyScope.LEADS_READ] : []), ...(mayCreate ? [ApiKeyScope.LEADS_CREATE] : [])],
      expireTime: timestampFromMs(Date.now() + 30 * DAY_MS),
    };
    const may = { memberId, mayRead, mayCreate };
    await actions.makeKey(
      sim,
      known,
      may,
      byRpc(() => sim.crmAt(core).apiKeys.createApiKey(request, CRM_TIMEOUT).then(issued)),
    );
  },
});

const issued = ({ apiKey, secret }: { readonly apiKey?: ApiKey | undefined; readonly secret: string }) => ({
  apiKeyId: apiKey?.id ?? '',
  secret,
});

/** The secret of a key is replaced. */
export const replaceKey = aScenario({
  weight: 2,
  choice: fc.record({ studio, key: mostlyFirst(3), member: mostlyFirst(2), core }),
  async run(sim, { studio, key, member, core }) {
    const known = studioAt(sim, studio);
    const target = keyOf(known, key);
    const memberId = one(known.memberIds, member);
    const request = { studioId: known.id, memberId, apiKeyId: target.apiKeyId };
    const call = () => sim.crmAt(core).apiKeys.replaceApiKey(request, CRM_TIMEOUT).then(issued);
    await actions.replaceKey(sim, known, target, memberId, byRpc(call));
  },
});

/** A key is revoked. */
export const revokeKey = aScenario({
  weight: 1,
  choice: fc.record({ studio, key: mostlyFirst(3), core }),
  async run(sim, { studio, key, core }) {
    const known = studioAt(sim, studio);
    const target = keyOf(known, key);
    const request = { studioId: known.id, memberId: 'owner', apiKeyId: target.apiKeyId };
    const call = () => sim.crmAt(core).apiKeys.revokeApiKey(request, CRM_TIMEOUT);
    await actions.revokeKey(sim, known, target, 'owner', byRpc(call));
  },
});
