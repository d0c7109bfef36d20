import { randomUUID } from 'node:crypto';
import { systemClock } from '../src/domain/clock.ts';
import { newId } from '../src/domain/new-id.ts';
import { openStore } from '../src/store/open-store.ts';
import type { Store } from '../src/store/store.ts';
import { createApiKey } from '../src/usecases/manage-api-keys.ts';
import { aLeadSource, aMember, aStudio, BY, DAY_MS, plus } from '../test/support/builders.ts';
import type { KeyOfStudio } from './lead-requests.ts';

/** Creates a studio with an owner, a source and a key. */
export async function createStudioWithKey(
  store: Store,
  studioId: string,
  sourceId: string = randomUUID(),
): Promise<KeyOfStudio> {
  const owner = aMember({ studioId });
  await store.putStudio(aStudio({ id: studioId }), BY);
  await store.putMember(owner);
  await store.putLeadSource(aLeadSource({ studioId, id: sourceId }));
  const deps = { store, clock: systemClock, newId };
  const { secret } = await createApiKey(deps, {
    studioId,
    memberId: owner.id,
    name: 'Website',
    scopes: ['leads.create', 'leads.read'],
    expiresAt: plus(deps.clock(), DAY_MS),
  });
  return { secret, sourceId };
}

/** Runs work on the store at an address, and closes it. */
export async function withStore<Result>(databaseUrl: string, work: (store: Store) => Promise<Result>): Promise<Result> {
  const store = await openStore(databaseUrl);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
