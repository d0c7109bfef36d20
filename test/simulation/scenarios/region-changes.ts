import fc from 'fast-check';
import { LOCAL_PHONES, REGIONS } from '../contacts.ts';
import { studio } from './choices.ts';
import { moveStudio } from './crm.ts';
import { aScenario } from './scenario.ts';
import { create } from './website.ts';

const idempotencyKey = fc.nat(59);

/**
 * Visitors with one phone number, without its country code, create leads before, while and after their studio changes
 * its region.
 */
export const moveStudioWhileCreating = aScenario({
  weight: 2,
  choice: fc.record({
    studio,
    region: fc.constantFrom(...REGIONS),
    phone: fc.constantFrom(...LOCAL_PHONES),
    before: idempotencyKey,
    meanwhile: idempotencyKey,
    after: idempotencyKey,
    core: fc.nat(1),
    url: fc.nat(2),
  }),
  async run(sim, { studio, region, phone, before, meanwhile, after, core, url }) {
    const visit = (idempotencyKey: number) => {
      const lead = { studio, idempotencyKey, otherContact: phone + 1, otherBody: 0, source: 0 } as const;
      return create.run(sim, { lead, times: 1, url, key: 0 });
    };
    await visit(before);
    await Promise.all([moveStudio.run(sim, { studio, region, core }), visit(meanwhile)]);
    await visit(after);
  },
});
