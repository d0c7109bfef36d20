import { afterAll, beforeAll, describe } from 'vitest';
import { mongoStoreContract } from '../contract/mongo-store-contract.ts';
import type { ReplicaSet } from './replica-set/replica-set.ts';
import { replicaSetOnPorts } from './replica-set-on-ports.ts';

describe('MongoDB, on the simulated replica set', () => {
  let set: ReplicaSet;
  beforeAll(async () => {
    set = await replicaSetOnPorts();
  });
  afterAll(() => set.stop());
  mongoStoreContract((database) => set.url(database), 'readable');
});
