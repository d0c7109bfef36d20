import { describeWithMongo } from '../support/mongodb.ts';
import { expectConformance } from './expect-conformance.ts';

describeWithMongo('on MongoDB', (mongoUrl) =>
  expectConformance(() => ({ DATABASE_URL: `${mongoUrl()}conformance-${crypto.randomUUID()}` })),
);
