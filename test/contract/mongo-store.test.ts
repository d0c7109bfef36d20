import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { openMongoStore } from '../../src/store/mongo/mongo-store.ts';
import type { Store } from '../../src/store/store.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { storeContract } from './store-contract.ts';

describeWithMongo('MongoDB', (mongoUrl) => {
  storeContract('MongoDB', async () => {
    const url = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
    const stores: Store[] = [];
    const open = async () => {
      const store = await openMongoStore(url);
      stores.push(store);
      return store;
    };
    const store = await open();
    return {
      store,
      async reopen() {
        await store.close();
        return open();
      },
      another: open,
      async dispose() {
        for (const each of stores) await each.close();
        const client = new MongoClient(url);
        await client.db().dropDatabase();
        await client.close();
      },
    };
  });
});
