import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { afterAll } from 'vitest';
import { openMongoStore } from '../../src/store/mongo/mongo-store.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { randomRuns } from './random-runs.ts';

describeWithMongo('leads in MongoDB', (mongoUrl) => {
  const database = `/test-${randomUUID()}`;
  const url = () => new URL(database, mongoUrl()).href;
  afterAll(async () => {
    const client = new MongoClient(url());
    await client.db().dropDatabase();
    await client.close();
  });

  randomRuns(200, () => openMongoStore(url()));
});
