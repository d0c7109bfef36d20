import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { aMember, aStudio, BY, STUDIO_ID, times } from '../support/builders.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { arrange, key, source, WRITES } from './every-call.ts';

/** Writes that change a credential, besides one of each method. */
const MORE_WRITES: readonly { readonly name: string; readonly call: (store: Store) => Promise<unknown> }[] = [
  { name: 'a put of every field of the studio', call: (store) => store.putStudio(OTHER_STUDIO, BY) },
  { name: 'a change of region', call: (store) => store.putStudio(aStudio({ regionCode: 'FR' }), BY) },
  { name: 'a put of the source', call: (store) => store.putLeadSource({ ...source, enabled: false }, BY) },
  { name: 'the removal of the issuer', call: (store) => store.removeMember(STUDIO_ID, aMember().id, BY) },
];

const OTHER_STUDIO = aStudio({ status: 'suspended', regionCode: 'FR', quotaLimit: 7, keepEnquiries: false });

describe.each([...WRITES, ...MORE_WRITES])('after $name', ({ call }) => {
  test.each(['its own process', 'another process'])('a credential is the stored one after writes by %s', async (by) => {
    const open = storesOfOneFile();
    const [reader, other] = [open(), open()];
    await arrange(reader);
    const [before, withSource] = [await findCredential(reader), await findCredential(reader, source.id)];
    expect([before, withSource]).toMatchObject([{ source: null }, { source }]);

    await call(by === 'another process' ? other : reader);

    const fresh = open();
    expect(await findCredential(reader)).toEqual(await findCredential(fresh));
    expect(await findCredential(reader, source.id)).toEqual(await findCredential(fresh, source.id));
  });
});

/** The methods that change credentials. */
const CHANGING =
  /^(?:(?:create|replace|revoke)ApiKey|put(?:ApiKeyQuota|Studio)|endStudio|(?:put|remove)(?:Member|LeadSource))$/;

test.each(WRITES.filter(({ name }) => !CHANGING.test(name)))(
  '$name does not make a store forget a credential',
  async ({ call }) => {
    const store = storesOfOneFile()();
    await arrange(store);
    const first = await store.findCredential(key.secretSha256);
    await call(store);
    expect(await store.findCredential(key.secretSha256)).toBe(first);
  },
);

test('a key that was not found before is found once it is created', async () => {
  const open = storesOfOneFile();
  const [reader, other] = [open(), open()];
  expect(await reader.findCredential(key.secretSha256)).toBeNull();

  await arrange(other);

  expect(await reader.findCredential(key.secretSha256)).toMatchObject({ key: { id: key.id } });
});

// @proves bounds-190
test('remembers at most fifty thousand credentials, and none for an unknown source', async () => {
  const path = join(temporaryFolder(), 'leads.db');
  const store = storesOfOneFile(path)();
  await arrange(store);
  const ids = times(50_001, () => newId());
  const database = new DatabaseSync(path);
  const insert = database.prepare('INSERT INTO lead_sources (studio_id, id, name, enabled) VALUES (?, ?, ?, 1)');
  database.exec('BEGIN');
  for (const id of ids) insert.run(STUDIO_ID, id, 'Website');
  database.exec('COMMIT');
  database.close();
  const find = (sourceId?: string) => store.findCredential(key.secretSha256, sourceId);

  const first = await find();
  const unknown = newId();
  expect(await find(unknown)).not.toBe(await find(unknown));
  for (const id of ids.slice(2)) await find(id);
  expect(await find()).toBe(first);
  for (const id of ids.slice(0, 2)) await find(id);

  expect(await find()).not.toBe(first);
  expect(await find()).toEqual(first);
});

/** Returns a function that opens another store of one new file. */
function storesOfOneFile(path = join(temporaryFolder(), 'leads.db')): () => Store {
  return () => {
    const store = openSqliteStore(path);
    onTestFinished(() => store.close());
    return store;
  };
}

/** Finds a credential without the last use of the key, which may be older. */
async function findCredential(store: Store, sourceId?: string) {
  const found = await store.findCredential(key.secretSha256, sourceId);
  return found && { ...found, key: { ...found.key, lastUsedAt: null } };
}
