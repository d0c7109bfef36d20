/**
 * The floor on MongoDB: the bare driver, which inserts one document per request, the plain way. Same documents, indexes and
 * write concern as the product's; no HTTP, no rules, nothing else.
 *
 *   DATABASE_URL=mongodb://… node bench/bare-driver.ts
 */
import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { type LeadDocument, leadDocument } from '../src/store/mongo/documents.ts';
import { INDEXES, makeIndex } from '../src/store/mongo/indexes.ts';
import { aLead, claimsOf } from '../test/support/builders.ts';
import type { Pace } from './drive.ts';
import { serveJobs } from './jobs.ts';
import { type LoadResult, Tally } from './tally.ts';

/** Something to do. */
export type DriverJob =
  /** Make the indexes, and so many leads. No result. */
  | { readonly kind: 'prepare'; readonly leads: number }
  /** Insert; each of the pace's connections stands for an insert in flight. Gives a LoadResult. */
  | { readonly kind: 'drive'; readonly pace: Pace };

const client = new MongoClient(process.env.DATABASE_URL ?? '', { writeConcern: { w: 'majority', journal: true } });
const leads = client.db().collection<LeadDocument>('leads');

serveJobs(async (job: DriverJob): Promise<LoadResult | null> => {
  if (job.kind === 'drive') return insertAtPace(job.pace);
  for (const index of INDEXES) await makeIndex(client.db(), index);
  await leads.insertMany(Array.from({ length: job.leads }, someLead));
  return null;
});

async function insertAtPace({ connections, durationMs }: Pace): Promise<LoadResult> {
  const tally = new Tally();
  const start = performance.now();
  const end = start + durationMs;
  const insertOn = async () => {
    for (let due = start; due < end; due = performance.now()) {
      try {
        await leads.insertOne(someLead());
        tally.answered(due, performance.now());
      } catch (error) {
        tally.failed(String(error));
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, insertOn));
  return tally.result(start, end);
}

/** The lead that the load on the product consists of, too. */
function someLead(): LeadDocument {
  const lead = aLead({
    studioId: 'demo',
    sourceId: randomUUID(),
    note: 'Would like to come on a weekday, after six.',
  });
  return leadDocument(lead, claimsOf(lead, { idempotencyKey: randomUUID() }));
}
