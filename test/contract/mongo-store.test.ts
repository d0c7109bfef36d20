import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { expect, onTestFinished, test } from 'vitest';
import { readDatabase } from '../../src/store/open-store.ts';
import { everyRecord } from '../../src/usecases/every-record.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { mongoStoreContract } from './mongo-store-contract.ts';

describeWithMongo('MongoDB', (mongoUrl) => {
  const toUrl = (database: string) => new URL(`/${database}`, mongoUrl()).href;
  mongoStoreContract(toUrl, 'adapter');

  // @proves limits-12
  test('doctor --records creates neither a collection nor an index', async () => {
    const url = toUrl(`test-${randomUUID()}`);
    let count = 0;
    await readDatabase(
      url,
      () => {},
      async (records) => {
        for await (const more of everyRecord(records)) count += more;
      },
    );
    expect(count).toBe(0);
    const client = new MongoClient(url);
    onTestFinished(() => client.close());
    expect(await client.db().listCollections().toArray()).toEqual([]);
  });
});
