import { vi } from 'vitest';
import { portToKeep } from '../crash/deployment.ts';
import { times } from '../support/builders.ts';
import { ReplicaSet } from './replica-set/replica-set.ts';

/** Starts a simulated replica set on real ports, in real time. The caller must stop it. */
export async function replicaSetOnPorts(): Promise<ReplicaSet> {
  const ports = await Promise.all(times(3, portToKeep));
  const set = new ReplicaSet(ports, {
    // A busy machine causes no election.
    electionMs: 600_000,
    fail(error) {
      setImmediate(() => {
        throw error;
      });
    },
  });
  for (const number of ports.keys()) set.start(number);
  set.elect(0);
  await vi.waitUntil(() => set.primary(), { timeout: 100_000 });
  return set;
}
