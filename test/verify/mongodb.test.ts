import { describeWithMongo } from '../support/mongodb.ts';
import { expectConformance } from './expect-conformance.ts';

// @proves leads-1
describeWithMongo('on MongoDB', (mongoUrl) =>
  expectConformance(() => ({ DATABASE_URL: `${mongoUrl()}conformance-${crypto.randomUUID()}` })),
);
