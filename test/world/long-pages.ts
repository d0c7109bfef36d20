import { randomUUID } from 'node:crypto';
import { BOUNDS, PAGE_SIZE } from '../../common/rules/field-rules.ts';
import { times } from '../support/builders.ts';
import type { CoreClients } from '../support/core-clients.ts';
import type { Life } from './life.ts';
import { makeKey, makeStudioApart } from './scenarios/apart.ts';

/** The number of concurrent creations. */
const AT_ONCE = 10;

/** The number of valid keys of the studio. */
const KEYS = 12;

/** A studio without activity whose page of leads has the maximum length: about 900 KB. */
export interface LongPages {
  readonly studioId: string;
  readonly secrets: readonly string[];
}

export async function makeLongPages(life: Life): Promise<LongPages> {
  const { leads } = life.crm[0] as CoreClients;
  const { id: studioId, secret } = await makeStudioApart(life);
  for (const _ of times(PAGE_SIZE.max / AT_ONCE, () => 0)) {
    await Promise.all(
      times(AT_ONCE, () => {
        const email = `${randomUUID()}@${life.personal}.example`;
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
  while (secrets.length < KEYS) secrets.push((await makeKey(life, studioId)).secret);
  return { studioId, secrets };
}
