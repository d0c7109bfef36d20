import { randomUUID } from 'node:crypto';
import { BOUNDS, PAGE_SIZE } from '../../common/rules/field-rules.ts';
import { times } from '../support/builders.ts';
import { makeKey, makeSeparateStudio } from './scenarios/separate-studio.ts';
import type { Simulation } from './simulation.ts';

/** The number of concurrent creations. */
const AT_ONCE = 10;

/** The number of valid keys of the studio. */
const KEYS = 12;

/** A studio without activity whose page of leads has the maximum length: about 900 KB. */
export interface LongPages {
  readonly studioId: string;
  readonly secrets: readonly string[];
}

export async function makeLongPages(sim: Simulation): Promise<LongPages> {
  const { leads } = sim.crmAt(0);
  const { id: studioId, secret } = await makeSeparateStudio(sim);
  for (const _ of times(PAGE_SIZE.max / AT_ONCE, () => 0)) {
    await Promise.all(
      times(AT_ONCE, () => {
        const email = `${randomUUID()}@${sim.personal}.example`;
        return leads.createLead({
          studioId,
          idempotencyKey: randomUUID(),
          displayName: '😀'.repeat(BOUNDS.displayName.max),
          contact: { value: { case: 'email', value: email } },
          note: '😀'.repeat(BOUNDS.note.max),
        });
      }),
    );
  }
  const secrets = [secret];
  while (secrets.length < KEYS) secrets.push((await makeKey(sim, studioId)).secret);
  return { studioId, secrets };
}
