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

interface Change {
  readonly make: (core: CoreClients) => Promise<unknown>;
  readonly undo: (core: CoreClients) => Promise<unknown>;
  /** Whether it is undone. */
  readonly isUndone: (core: CoreClients) => Promise<boolean>;
}

/** Changes of a studio and its lead that others undo. */
const CHANGES = {
  member: ({ studioId, requestId }): Change => ({
    make: ({ directory }) =>
      directory.putMember({ member: { studioId, id: 'guest', role: MemberRole.ADMIN }, requestId }, CRM_TIMEOUT),
    undo: ({ directory }) => directory.removeMember({ studioId, memberId: 'guest' }, CRM_TIMEOUT),
    isUndone: ({ apiKeys }) =>
      apiKeys.listApiKeys({ studioId, memberId: 'guest' }, CRM_TIMEOUT).then(
        () => false,
        (error) => {
          if (error.code === Code.PermissionDenied) return true;
          throw error;
        },
      ),
  }),
  status: ({ studioId, requestId }): Change => {
    const put = (directory: CoreClients['directory'], status: StudioStatus, more = {}) =>
      directory.putStudio({ studio: { id: studioId, status }, ...more }, CRM_TIMEOUT);
    return {
      make: ({ directory }) => put(directory, StudioStatus.SUSPENDED, { requestId }),
      undo: ({ directory }) => put(directory, StudioStatus.ACTIVE),
      isUndone: async ({ directory }) =>
        (await directory.getStudio({ studioId }, CRM_TIMEOUT)).studio?.status === StudioStatus.ACTIVE,
    };
  },
  stage: ({ studioId, leadId, requestId }): Change => {
    const move = (leads: CoreClients['leads'], stage: LeadStage, more = {}) =>
      leads.changeLeadStage({ studioId, leadId, stage, ...more }, CRM_TIMEOUT);
    return {
      make: ({ leads }) => move(leads, LeadStage.LOST, { requestId }),
      undo: ({ leads }) => move(leads, LeadStage.NEW),
      isUndone: async ({ leads }) =>
        (await leads.getLead({ studioId, leadId }, CRM_TIMEOUT)).lead?.stage === LeadStage.NEW,
    };
  },
} satisfies Record<string, (of: { studioId: string; leadId: string; requestId: string }) => Change>;

const NAMES = Object.keys(CHANGES) as (keyof typeof CHANGES)[];

/** A request of the CRM arrives once more, after others have undone what it did: it changes nothing. */
export const repeatLate = aScenario({
  weight: 2,
  choice: fc.record({ what: fc.constantFrom(...NAMES), core: fc.nat(1), afterMs: lasting(1, 2000) }),
  run: (sim, { what, core: index, afterMs }) =>
    asFarAsDefinite(async () => {
      const studio = await makeSeparateStudio(sim);
      const leadId = leadIdIn(await createSeparateLead(sim, studio, separateLead(sim, studio.id, 'late')));
      const requestId = sim.uuid('late request', studio.id);
      const { make, undo, isUndone } = CHANGES[what]({ studioId: studio.id, leadId, requestId });
      const call = (name: string, run: (core: CoreClients) => Promise<unknown>, core: number) =>
        definiteOutcome(sim, `${name} ${what} of ${studio.id}`, () => run(sim.crmAt(core)));
      await call('makes', make, index);
      await call('undoes', undo, 1 - index);
      await sleep(afterMs);
      await call('repeats', make, index);
      const seen = await definiteOutcome(sim, `looks at ${what} of ${studio.id}`, () => isUndone(sim.crmAt(1 - index)));
      if (!('answer' in seen) || !seen.answer)
        sim.history.fail(`a repeated request undoes what others have done meanwhile: ${what} of ${studio.id}`);
    }),
});

/** A studio moves to another country: its leads are found by the numbers of the former one, and met by the same digits. */
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
        sim.history.fail(`a lead of ${studio.id} is not found by its number in the former country`);
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
