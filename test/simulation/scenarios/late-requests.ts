import { setTimeout as sleep } from 'node:timers/promises';
import { Code } from '@connectrpc/connect';
import fc from 'fast-check';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { CoreClients } from '../../support/core-clients.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { lasting } from './choices.ts';
import { asFarAsDefinite, definiteOutcome } from './definite-outcomes.ts';
import { aScenario } from './scenario.ts';
import {
  createSeparateLead,
  inShort,
  leadIdIn,
  makeSeparateStudio,
  type SeparateStudio,
  separateLead,
} from './separate-studio.ts';

/** Calls that make a change with a request id, undo it, and tell whether it is undone. */
type Change = readonly [
  make: (core: CoreClients) => Promise<unknown>,
  undo: (core: CoreClients) => Promise<unknown>,
  isUndone: (core: CoreClients) => Promise<boolean>,
];

type Ids = Readonly<Record<'studioId' | 'leadId' | 'apiKeyId' | 'requestId', string>>;

/** Changes of a studio and its lead that others undo. */
const CHANGES: Readonly<Record<string, (ids: Ids) => Change>> = {
  member: ({ studioId, requestId }) => [
    ({ directory }) => directory.putMember({ member: member(studioId, 'guest'), requestId }, CRM_TIMEOUT),
    ({ directory }) => directory.removeMember({ studioId, memberId: 'guest' }, CRM_TIMEOUT),
    async (core) => !(await isMember(core, studioId, 'guest')),
  ],
  'removal of a member': ({ studioId, requestId }) => [
    ({ directory }) => directory.removeMember({ studioId, memberId: 'leaving', requestId }, CRM_TIMEOUT),
    ({ directory }) => directory.putMember({ member: member(studioId, 'leaving') }, CRM_TIMEOUT),
    (core) => isMember(core, studioId, 'leaving'),
  ],
  source: ({ studioId, requestId }) => {
    const source = (enabled: boolean) => ({ leadSource: { studioId, id: requestId, name: 'Form', enabled } });
    return [
      ({ directory }) => directory.putLeadSource({ ...source(false), requestId }, CRM_TIMEOUT),
      ({ directory }) => directory.putLeadSource(source(true), CRM_TIMEOUT),
      async ({ directory }) =>
        (await directory.listLeadSources({ studioId }, CRM_TIMEOUT)).leadSources.every(({ enabled }) => enabled),
    ];
  },
  status: ({ studioId, requestId }) => {
    const { SUSPENDED, ACTIVE } = StudioStatus;
    const studio = (status: StudioStatus) => ({ studio: { id: studioId, status } });
    return [
      ({ directory }) => directory.putStudio({ ...studio(SUSPENDED), requestId }, CRM_TIMEOUT),
      ({ directory }) => directory.putStudio(studio(ACTIVE), CRM_TIMEOUT),
      async ({ directory }) => (await directory.getStudio({ studioId }, CRM_TIMEOUT)).studio?.status === ACTIVE,
    ];
  },
  stage: ({ studioId, leadId, requestId }) => {
    const { LOST, NEW } = LeadStage;
    return [
      ({ leads }) => leads.changeLeadStage({ studioId, leadId, stage: LOST, requestId }, CRM_TIMEOUT),
      ({ leads }) => leads.changeLeadStage({ studioId, leadId, stage: NEW }, CRM_TIMEOUT),
      async ({ leads }) => (await leads.getLead({ studioId, leadId }, CRM_TIMEOUT)).lead?.stage === NEW,
    ];
  },
  correction: ({ studioId, leadId: id, requestId }) => [
    ({ leads }) => leads.updateLead({ studioId, lead: { id, displayName: 'Eda' }, requestId }, CRM_TIMEOUT),
    ({ leads }) => leads.updateLead({ studioId, lead: { id, displayName: 'Ida' } }, CRM_TIMEOUT),
    async ({ leads }) => (await leads.getLead({ studioId, leadId: id }, CRM_TIMEOUT)).lead?.displayName === 'Ida',
  ],
  'quota of a key': ({ studioId, apiKeyId, requestId }) => [
    ({ directory }) => directory.putApiKeyQuota({ studioId, apiKeyId, quotaLimit: 500_000, requestId }, CRM_TIMEOUT),
    ({ directory }) => directory.putApiKeyQuota({ studioId, apiKeyId, quotaLimit: 600_000 }, CRM_TIMEOUT),
    async ({ apiKeys }) => {
      const { apiKeys: keys } = await apiKeys.listApiKeys({ studioId, memberId: 'owner' }, CRM_TIMEOUT);
      return keys.find(({ id }) => id === apiKeyId)?.quotaLimit === 600_000;
    },
  ],
};

const member = (studioId: string, id: string) => ({ studioId, id, role: MemberRole.ADMIN });

const isMember = ({ apiKeys }: CoreClients, studioId: string, memberId: string): Promise<boolean> =>
  apiKeys.listApiKeys({ studioId, memberId }, CRM_TIMEOUT).then(
    () => true,
    (error) => {
      if (error.code === Code.PermissionDenied) return false;
      throw error;
    },
  );

/** Repeats requests of the CRM after others have undone their changes. The repetitions must change nothing. */
export const repeatLate = aScenario({
  weight: 2,
  choice: fc.record({ core: fc.nat(1), afterMs: lasting(1, 2000) }),
  run: (sim, { core: index, afterMs }) =>
    asFarAsDefinite(async () => {
      const studio = await makeSeparateStudio(sim);
      const { id: studioId, apiKeyId } = studio;
      const leadId = leadIdIn(await createSeparateLead(sim, studio, separateLead(sim, studioId, 'late')));
      const repeat = async ([what, change]: [string, (ids: Ids) => Change]) => {
        const requestId = sim.uuid('late request', studioId, what);
        const [make, undo, isUndone] = change({ studioId, leadId, apiKeyId, requestId });
        const call = <T>(name: string, run: (core: CoreClients) => Promise<T>, core: number) =>
          definiteOutcome(sim, `${name} ${what} of ${studioId}`, () => run(sim.crmAt(core)));
        await call('makes', make, index);
        await call('undoes', undo, 1 - index);
        await sleep(afterMs);
        await call('repeats', make, index);
        const seen = await call('looks at', isUndone, 1 - index);
        if (!('answer' in seen) || !seen.answer)
          sim.history.fail(`a repeated request undoes a later change: ${what} of ${studioId}`);
      };
      await Promise.all(Object.entries(CHANGES).map(repeat));
    }),
});

/** Moves a studio to another country. Its leads must still be found by their local numbers, and block the same digits. */
export const moveAway = aScenario({
  weight: 1,
  choice: fc.record({ core: fc.nat(1), regionCode: fc.constantFrom('FR', 'AT', 'US') }),
  run: (sim, { core, regionCode }) =>
    asFarAsDefinite(async () => {
      const studio = await makeSeparateStudio(sim);
      const lead = separateLead(sim, studio.id, 'moved', { type: 'phone', value: '+49 30 1234567' });
      const leadId = leadIdIn(await createSeparateLead(sim, studio, lead));
      const create = (name: string, value: string) =>
        createSeparateLead(sim, studio, separateLead(sim, studio.id, name, { type: 'phone', value }));
      await create('national', '030 7654321');
      await definiteOutcome(sim, `${studio.id} moves`, () =>
        sim.crmAt(core).directory.putStudio({ studio: { id: studio.id, regionCode } }, CRM_TIMEOUT),
      );
      if (!(await isFound(sim, studio, leadId)))
        sim.history.fail(`a lead of ${studio.id} is not found by its local number in the former country`);
      const again = inShort(await create('again', '030\u30fc7654321'));
      if (again !== '409 integration_lead_already_open')
        sim.history.fail(`once ${studio.id} has moved, the digits of an open lead get ${again}`);
    }),
});

async function isFound(sim: Simulation, { id: studioId }: SeparateStudio, leadId: string): Promise<boolean> {
  const contact = { value: { case: 'phone', value: '030 1234567' } } as const;
  const found = await definiteOutcome(sim, `a lead of ${studioId} is looked for`, () =>
    sim.crmAt(0).leads.findLeads({ studioId, contact }, CRM_TIMEOUT),
  );
  return 'answer' in found && found.answer.leads.some(({ id }) => id === leadId);
}
