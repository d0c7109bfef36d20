import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { afterAll } from 'vitest';
import { openMongoStore } from '../../src/store/mongo/mongo-store.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { sizeOf } from '../support/size-of.ts';
import { randomRuns } from './random-runs.ts';

/** The number of runs. One takes about 170 ms. */
const RUNS = sizeOf('SOAK_RUNS_MONGODB', { usual: 60, soak: 5_000 });

// @proves leads-12
describeWithMongo('leads in MongoDB', (mongoUrl) => {
  const database = `/test-${randomUUID()}`;
  const url = () => new URL(database, mongoUrl()).href;
  afterAll(async () => {
    const client = new MongoClient(url());
    await client.db().dropDatabase();
    await client.close();
  });

  randomRuns(RUNS, () => openMongoStore(url()));
});
