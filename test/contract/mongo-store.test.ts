import { describeWithMongo } from '../support/mongodb.ts';
import { mongoStoreContract } from './mongo-store-contract.ts';

describeWithMongo('MongoDB', (mongoUrl) => mongoStoreContract((database) => new URL(`/${database}`, mongoUrl()).href));
