import { DAY_MS } from '../../common/units.ts';
import { API_KEY_SCOPES, MAX_VALIDITY_DAYS } from '../domain/api-key.ts';
import type { CallingProgram } from '../domain/audit.ts';
import type { Dependencies } from './dependencies.ts';
import { createApiKey, listApiKeys } from './manage-api-keys.ts';
import { listEveryLeadSource, putLeadSource, putMember } from './members-and-sources.ts';
import { putStudio } from './studios.ts';

const MEMBER_ID = 'demo-owner';

export interface Demo {
  readonly studioId: string;
  readonly memberId: string;
  readonly sourceId: string;
  /** The secret of its key; null if the studio already had a key. */
  readonly secret: string | null;
}

/** Creates the demo studio with an owner, a lead source and a key, each unless it exists. If the studio has ended, it creates another one. */
export async function createDemo(deps: Dependencies, by: CallingProgram): Promise<Demo> {
  const { store, clock, newId } = deps;
  let [studioId, studio] = ['demo', await store.findStudio('demo')];
  for (let number = 2; studio?.status === 'ended'; number += 1) {
    studioId = `demo-${number}`;
    studio = await store.findStudio(studioId);
  }
  if (!studio) {
    await putStudio(deps, { id: studioId, status: 'active', regionCode: undefined, memberId: MEMBER_ID, ...by });
  }
  if (!(await store.findMember(studioId, MEMBER_ID))) {
    await putMember(deps, { studioId, id: MEMBER_ID, role: 'owner', ...by });
  }
  let [source] = await listEveryLeadSource(deps, studioId);
  if (!source) {
    source = { studioId, id: newId(), name: 'Website form', enabled: true };
    await putLeadSource(deps, { ...source, ...by });
  }
  const manager = { studioId, memberId: MEMBER_ID };
  const hasKey = (await listApiKeys(deps, manager)).apiKeys.length > 0;
  const issued = hasKey
    ? null
    : await createApiKey(deps, {
        ...manager,
        ...by,
        name: 'Demo key',
        scopes: API_KEY_SCOPES,
        expiresAt: new Date(clock().getTime() + MAX_VALIDITY_DAYS * DAY_MS),
      });
  return { ...manager, sourceId: source.id, secret: issued?.secret ?? null };
}
