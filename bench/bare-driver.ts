/**
 * The floor on MongoDB: the bare driver with one command per request, and the product's documents, indexes and concerns, but without
 * HTTP or rules.
 *
 *   DATABASE_URL=mongodb://… node bench/bare-driver.ts
 */
import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { FIRST_ID, LAST_ID, type LeadDocument, leadDocument, leadKey } from '../src/store/mongo/documents.ts';
import { createIndex, INDEXES } from '../src/store/mongo/indexes.ts';
import { aLead, claimsOf } from '../test/support/builders.ts';
import type { Pace } from './drive.ts';
import { serveJobs } from './jobs.ts';
import { type LoadResult, Tally } from './tally.ts';
import type { Scenario } from './workload.ts';

export type DriverJob =
  /** Creates the indexes and some leads. No result. */
  | { readonly kind: 'prepare'; readonly leads: number }
  /** Inserts or reads, with one command in flight per connection of the pace. Returns a LoadResult. */
  | { readonly kind: 'drive'; readonly scenario: Scenario; readonly pace: Pace };

/** The studio of all leads. */
const studioId = 'demo';

/** One more than the page size, to see whether there is a next page. */
const PAGE_READ = 26;

const client = new MongoClient(process.env.DATABASE_URL ?? '', {
  writeConcern: { w: 'majority', journal: true },
  readConcern: { level: 'majority' },
});
const leads = client.db().collection<LeadDocument>('leads');

/** The leads that can be read. */
const known: LeadDocument[] = [];

/** The command of each scenario. */
const COMMANDS: Readonly<Record<Scenario, () => Promise<unknown>>> = {
  create: () => leads.insertOne(someLead()),
  replay: () => leads.findOne({ studioId, 'idempotency.key': anyKnown().idempotency.key }),
  get: () => leads.findOne({ _id: anyKnown()._id }),
  list: () => {
    const end = Math.random() < 0.5 ? leadKey(studioId, LAST_ID) : anyKnown()._id;
    const _id = { $gte: leadKey(studioId, FIRST_ID), $lt: end };
    return leads.find({ studioId, _id }).sort({ _id: -1 }).limit(PAGE_READ).toArray();
  },
};

serveJobs(async (job: DriverJob): Promise<LoadResult | null> => {
  if (job.kind === 'drive') return commandAtPace(COMMANDS[job.scenario], job.pace);
  for (const index of INDEXES) await createIndex(client.db(), index);
  known.push(...Array.from({ length: job.leads }, someLead));
  await leads.insertMany(known);
  return null;
});

async function commandAtPace(command: () => Promise<unknown>, { connections, durationMs }: Pace): Promise<LoadResult> {
  const tally = new Tally();
  const start = performance.now();
  const end = start + durationMs;
  const commandOn = async () => {
    for (let due = start; due < end; due = performance.now()) {
      try {
        await command();
        tally.answered(due, performance.now());
      } catch (error) {
        tally.failed(String(error));
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, commandOn));
  return tally.result(start, end);
}

const anyKnown = () => known[Math.floor(Math.random() * known.length)] as LeadDocument;

/** The same lead as in the load on the product. */
function someLead(): LeadDocument {
  const lead = aLead({ studioId, sourceId: randomUUID(), note: 'Would like to come on a weekday, after six.' });
  return leadDocument(lead, claimsOf(lead, { idempotencyKey: randomUUID() }));
}
