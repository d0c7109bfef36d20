import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import { MAX_WAITING_WRITES } from '../../src/store/sqlite/group-commit.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, aMember, anApiKey, aStudio, BY, keysFor, NOW, STUDIO_ID, times } from '../support/builders.ts';
import { type LockHolder, lockHolder } from '../support/lock-holder.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { describeIf, hasCommand } from '../tools/servers.ts';
import { arrange, createAnother, lead, READS, WRITES } from './every-call.ts';
import { moveLead } from './store-actions.ts';

/** Returns a function that tells whether a promise has settled. */
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
    await arrange(store);
  });

  /** Reads for many turns of the event loop, in which writes run into the lock. */
  const readAll = async () => {
    for (const { call } of READS) {
      await call(store);
      await nextTurn();
    }
  };

  test.each(['BEGIN IMMEDIATE', 'BEGIN EXCLUSIVE'] as const)(
    'a write lock by %s makes every write wait and blocks no read',
    async (begin) => {
      await other.lock(begin);
      const writes = WRITES.map(({ call }) => call(store));
      const areSettled = writes.map(watch);

      await readAll();

      expect(areSettled.map((isSettled) => isSettled())).toEqual(writes.map(() => false));
      await other.unlock();
      const statuses = (await Promise.allSettled(writes)).map(({ status }) => status);
      expect(statuses).toEqual(writes.map(() => 'fulfilled'));
    },
  );

  test('writes made at different moments wait for the lock and keep their order', async () => {
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

  test('a write that waits for the lock is refused at its deadline, and nothing is written', async () => {
    await other.lock();
    const created = aLead();
    const keys = keysFor(created);

    await expect(store.createLead(created, keys)).rejects.toThrow('nothing was written');

    await other.unlock();
    expect(await store.findLead(STUDIO_ID, created.id)).toBeNull();
    expect(await store.createLead(created, keys)).toMatchObject({ kind: 'created' });
  });

  // @proves bounds-46
  test('a bounded number of writes wait for the lock; the next is refused immediately', async () => {
    await other.lock();
    const put = () => store.putMember(aMember({ role: 'staff' }), BY);
    const first = put();
    // By then the first write has run into the lock.
    await readAll();
    const waiting = times(MAX_WAITING_WRITES - 1, put);
    const areSettled = [first, ...waiting].map(watch);

    await expect(put()).rejects.toThrow(StoreUnavailable);

    expect(areSettled.some((isSettled) => isSettled())).toBe(false);
    await other.unlock();
    await Promise.all([first, ...waiting]);
  });

  test('closing the store waits for writes that wait for the lock', async () => {
    await other.lock();
    const write = createAnother(store);
    const isWritten = watch(write);
    const isClosed = watch(store.close());

    for (const _ of times(20, () => 0)) await nextTurn();

    expect([isWritten(), isClosed()]).toEqual([false, false]);
    await other.unlock();
    expect(await write).toMatchObject({ kind: 'created' });
  });
});

/**
 * Invalidates the log's index as a killed process may leave it, and locks it like a process that recovers the log. Restores it
 * when its input ends. The offsets are those of SQLite's "WAL-index" format.
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

/** Starts a recovery of the log, which lasts until the returned function is called. */
async function recovering(path: string): Promise<() => Promise<unknown>> {
  const process = spawn('python3', ['-c', RECOVER, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(process, 'exit');
  await once(process.stdout, 'data');
  return () => {
    process.stdin.end();
    return ended;
  };
}

// @proves crashes-30 sqlite-3
describeIf(hasCommand('python3'), 'while another process recovers the log', 'install python3', () => {
  test('reads wait while another process recovers the log, and are then answered', async () => {
    const path = join(temporaryFolder(), 'leads.db');
    const store = openSqliteStore(path);
    onTestFinished(() => store.close());
    await store.putStudio(aStudio(), BY);
    await store.createLead(lead, keysFor(lead));
    await nextTurn();
    const recovered = await recovering(path);

    const reads = [store.findLead(STUDIO_ID, lead.id), store.findStudio(STUDIO_ID)];
    const areSettled = reads.map(watch);
    for (const _ of times(20, () => 0)) await nextTurn();

    expect(areSettled.map((isSettled) => isSettled())).toEqual([false, false]);
    const ended = recovered();
    expect(await Promise.all(reads)).toEqual([lead, aStudio()]);
    await ended;
  });

  test('no credential predates a revocation made before the log is recovered', async () => {
    const path = join(temporaryFolder(), 'leads.db');
    const [store, other] = [openSqliteStore(path), openSqliteStore(path)];
    onTestFinished(() => Promise.all([store.close(), other.close()]).then(() => {}));
    await store.putStudio(aStudio(), BY);
    await store.putMember(aMember(), BY);
    const keys = times(2, () => anApiKey());
    for (const key of keys) await store.createApiKey(key, NOW);
    const found = () => keys.map(({ secretSha256 }) => store.findCredential(secretSha256));
    await Promise.all(found());
    for (const { id } of keys) await other.revokeApiKey(STUDIO_ID, id, BY);
    const recovered = await recovering(path);

    const reads = found();
    for (const _ of times(20, () => 0)) await nextTurn();
    const ended = recovered();

    const revokedAt = (await Promise.all(reads)).map((credential) => credential?.key.revokedAt);
    expect(revokedAt).toEqual([BY.now, BY.now]);
    await ended;
  });
});
