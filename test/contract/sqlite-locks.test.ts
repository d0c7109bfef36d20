import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { MAX_WAITING_WRITES } from '../../src/store/sqlite/group-commit.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import {
  aLead,
  aLeadSource,
  aMember,
  anApiKey,
  aStudio,
  BY,
  claimsOf,
  NOW,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { type LockHolder, lockHolder } from '../support/lock-holder.ts';
import { temporaryFolder } from '../support/processes.ts';
import { describeIf, hasCommand } from '../support/servers.ts';
import { correctLead, moveLead, replacementOf } from './store-actions.ts';

const lead = aLead({ createdAt: NOW });
const key = anApiKey();
const source = aLeadSource();
const ofLead = { studioId: STUDIO_ID, leadId: lead.id };
const another = () => {
  const other = aLead();
  return [other, claimsOf(other)] as const;
};

type Call = (store: Store) => Promise<unknown>;

/** A call of every method of the port, by whether it takes the write lock of the file. A new method belongs here. */
const CALLS: { readonly [Method in Exclude<keyof Store, 'close'>]: readonly ['reads' | 'writes', Call] } = {
  check: ['reads', (store) => store.check()],
  createLead: ['writes', (store) => store.createLead(...another())],
  findLeadByIdempotencyKey: ['reads', (store) => store.findLeadByIdempotencyKey(STUDIO_ID, newId())],
  findLead: ['reads', (store) => store.findLead(STUDIO_ID, lead.id)],
  presenceOfLead: ['reads', (store) => store.presenceOfLead(STUDIO_ID, lead.id)],
  listLeads: ['reads', (store) => store.listLeads(STUDIO_ID, null, 10)],
  walkLeads: ['reads', (store) => store.walkLeads(STUDIO_ID, null, 10)],
  findLeadsOfContact: ['reads', (store) => store.findLeadsOfContact(STUDIO_ID, claimsOf(lead).contactKeys)],
  changeLeadStage: ['writes', (store) => moveLead(store, lead, 'won')],
  updateLead: ['writes', (store) => correctLead(store, lead, { displayName: 'Ada King' })],
  isLeadChangeApplied: ['reads', (store) => store.isLeadChangeApplied(STUDIO_ID, lead.id, newId())],
  listLeadChanges: ['reads', (store) => store.listLeadChanges(10)],
  acknowledgeLeadChanges: ['writes', (store) => store.acknowledgeLeadChanges([{ ...ofLead, revision: 0 }])],
  resendLeads: ['writes', (store) => store.resendLeads(STUDIO_ID, null, 10, NOW)],
  measureLeadChanges: ['reads', (store) => store.measureLeadChanges(10)],
  eraseLead: ['writes', (store) => store.eraseLead({ ...ofLead, memberId: null, now: NOW })],
  walkErasedLeads: ['reads', (store) => store.walkErasedLeads(STUDIO_ID, null, 10)],
  createApiKey: ['writes', (store) => store.createApiKey(anApiKey(), NOW)],
  listLiveApiKeys: ['reads', (store) => store.listLiveApiKeys(STUDIO_ID)],
  listFormerApiKeys: ['reads', (store) => store.listFormerApiKeys(STUDIO_ID, null, 10)],
  replaceApiKey: ['writes', (store) => store.replaceApiKey(replacementOf(key))],
  revokeApiKey: ['writes', (store) => store.revokeApiKey(STUDIO_ID, key.id, BY)],
  putApiKeyQuota: ['writes', (store) => store.putApiKeyQuota(STUDIO_ID, key.id, 50, BY)],
  recordApiKeyUse: [
    'writes',
    (store) => store.recordApiKeyUse({ studioId: STUDIO_ID, keyId: key.id, now: NOW, unlessSince: NOW }),
  ],
  findCredential: ['reads', (store) => store.findCredential(key.secretSha256)],
  putStudio: ['writes', (store) => store.putStudio(aStudio({ status: 'suspended' }), BY)],
  findStudio: ['reads', (store) => store.findStudio(STUDIO_ID)],
  listStudios: ['reads', (store) => store.listStudios(null, 10)],
  putMember: ['writes', (store) => store.putMember(aMember({ role: 'staff' }), BY)],
  findMember: ['reads', (store) => store.findMember(STUDIO_ID, 'member-1')],
  removeMember: ['writes', (store) => store.removeMember(STUDIO_ID, 'member-1', BY)],
  putLeadSource: ['writes', (store) => store.putLeadSource(aLeadSource())],
  removeLeadSource: ['writes', (store) => store.removeLeadSource(STUDIO_ID, source.id)],
  findLeadSource: ['reads', (store) => store.findLeadSource(STUDIO_ID, source.id)],
  listLeadSources: ['reads', (store) => store.listLeadSources(STUDIO_ID, null, 10)],
  listAuditEvents: ['reads', (store) => store.listAuditEvents(STUDIO_ID, null)],
};

const callsThat = (kind: 'reads' | 'writes') =>
  Object.entries(CALLS).flatMap(([name, [itsKind, call]]) => (itsKind === kind ? [{ name, call }] : []));

/** Returns whether a promise has settled. */
function watch(promise: Promise<unknown>): () => boolean {
  let isSettled = false;
  const settled = () => {
    isSettled = true;
  };
  promise.then(settled, settled);
  return () => isSettled;
}

// @proves crashes-30 sqlite-2
describe('while another process holds the write lock of the file', () => {
  let store: Store;
  let other: LockHolder;

  beforeEach(async () => {
    const path = join(temporaryFolder(), 'leads.db');
    const opened = openSqliteStore(path);
    store = opened;
    onTestFinished(() => opened.close());
    other = lockHolder(path);
    await store.putStudio(aStudio(), BY);
    await store.putMember(aMember(), BY);
    await store.putLeadSource(source);
    await store.createApiKey(key, NOW);
    await store.createLead(lead, claimsOf(lead));
  });

  /** Reads in many turns of the event loop, in which writes meet the lock. */
  const readAll = async () => {
    for (const { call } of callsThat('reads')) {
      await call(store);
      await nextTurn();
    }
  };

  test.each(['BEGIN IMMEDIATE', 'BEGIN EXCLUSIVE'] as const)(
    'by %s, every reading method is answered',
    async (begin) => {
      await other.lock(begin);

      await readAll();

      // Only now is the lock released.
      await other.unlock();
    },
  );

  test.each(callsThat('writes'))('$name waits, and does not block what is read', async ({ call }) => {
    await other.lock();
    const write = call(store);
    const isSettled = watch(write);

    await readAll();

    expect(isSettled()).toBe(false);
    await other.unlock();
    await write;
  });

  test('writes of different moments wait and are written in their order', async () => {
    await other.lock();
    const order: string[] = [];
    const writes = (['contacted', 'trial_booked', 'trial_attended'] as const).map(async (stage) => {
      expect(await moveLead(store, lead, stage)).toMatchObject({ kind: 'changed' });
      order.push(stage);
    });
    await readAll();
    writes.push(
      moveLead(store, lead, 'won').then(() => {
        order.push('won');
      }),
    );
    await readAll();
    await other.unlock();
    await Promise.all(writes);

    expect(order).toEqual(['contacted', 'trial_booked', 'trial_attended', 'won']);
    expect(await store.findLead(STUDIO_ID, lead.id)).toMatchObject({ stage: 'won' });
  });

  test('a write is refused at its deadline, with nothing written', async () => {
    await other.lock();
    const [created, claims] = another();

    await expect(store.createLead(created, claims)).rejects.toThrow('nothing was written');

    await other.unlock();
    expect(await store.findLead(STUDIO_ID, created.id)).toBeNull();
    expect(await store.createLead(created, claims)).toMatchObject({ kind: 'created' });
  });

  // @proves bounds-46
  test('a bounded number of writes wait; the next is refused immediately', async () => {
    await other.lock();
    const put = () => store.putMember(aMember({ role: 'staff' }), BY);
    const first = put();
    // The first has met the lock.
    await readAll();
    const waiting = times(MAX_WAITING_WRITES - 1, put);
    const areSettled = [first, ...waiting].map(watch);

    await expect(put()).rejects.toThrow(StoreUnavailable);

    expect(areSettled.some((isSettled) => isSettled())).toBe(false);
    await other.unlock();
    await Promise.all([first, ...waiting]);
  });

  test('closing the store waits for the writes that wait', async () => {
    await other.lock();
    const write = store.createLead(...another());
    const isWritten = watch(write);
    const isClosed = watch(store.close());

    for (const _ of times(20, () => 0)) await nextTurn();

    expect([isWritten(), isClosed()]).toEqual([false, false]);
    await other.unlock();
    expect(await write).toMatchObject({ kind: 'created' });
  });
});

/**
 * Locks the log's index as a process does that recovers the log, after one that was killed has left the index invalid.
 * Restores it when its input ends. The offsets are those of SQLite's "WAL-index" format.
 */
const RECOVER = `
import fcntl, sys
with open(sys.argv[1] + '-shm', 'r+b') as index:
    fcntl.lockf(index, fcntl.LOCK_EX, 1, 120)
    fcntl.lockf(index, fcntl.LOCK_EX, 1, 122)
    headers = index.read(96)
    index.seek(0)
    index.write(bytes(96))
    index.flush()
    print('locked', flush=True)
    sys.stdin.read()
    index.seek(0)
    index.write(headers)
    index.flush()`;

// @proves crashes-30 sqlite-3
describeIf(hasCommand('python3'), 'while another process recovers the log', 'install python3', () => {
  test('reads wait, and are answered after it', async () => {
    const path = join(temporaryFolder(), 'leads.db');
    const store = openSqliteStore(path);
    onTestFinished(() => store.close());
    await store.putStudio(aStudio(), BY);
    await store.createLead(lead, claimsOf(lead));
    await nextTurn();
    const recovering = spawn('python3', ['-c', RECOVER, path], { stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = once(recovering, 'exit');
    await once(recovering.stdout, 'data');

    const reads = [store.findLead(STUDIO_ID, lead.id), store.findStudio(STUDIO_ID)];
    const areSettled = reads.map(watch);
    for (const _ of times(20, () => 0)) await nextTurn();

    expect(areSettled.map((isSettled) => isSettled())).toEqual([false, false]);
    recovering.stdin.end();
    expect(await Promise.all(reads)).toEqual([lead, aStudio()]);
    await ended;
  });
});
