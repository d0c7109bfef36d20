/**
 * The floor on MongoDB: the bare driver, one command per request, the plain way. Same documents, indexes and concerns as the
 * product's; no HTTP, no rules, nothing else.
 *
 *   DATABASE_URL=mongodb://… node bench/bare-driver.ts
 */
import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { FIRST_ID, LAST_ID, type LeadDocument, leadDocument, leadKey } from '../src/store/mongo/documents.ts';
import { INDEXES, makeIndex } from '../src/store/mongo/indexes.ts';
import { aLead, claimsOf } from '../test/support/builders.ts';
import type { Pace } from './drive.ts';
import { serveJobs } from './jobs.ts';
import { type LoadResult, Tally } from './tally.ts';
import type { Scenario } from './workload.ts';

/** Something to do. */
export type DriverJob =
  /** Make the indexes, and so many leads. No result. */
  | { readonly kind: 'prepare'; readonly leads: number }
  /** Insert or read; each of the pace's connections stands for a command in flight. Gives a LoadResult. */
  | { readonly kind: 'drive'; readonly scenario: Scenario; readonly pace: Pace };

/** The studio of all leads. */
const studioId = 'demo';

/** One more than a page of the usual size tells whether there is another. */
const PAGE_READ = 26;

const client = new MongoClient(process.env.DATABASE_URL ?? '', {
  writeConcern: { w: 'majority', journal: true },
  readConcern: { level: 'majority' },
});
const leads = client.db().collection<LeadDocument>('leads');

/** What can be asked for. */
const known: LeadDocument[] = [];

/** What stands for each kind of request. */
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
  for (const index of INDEXES) await makeIndex(client.db(), index);
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

/** The lead that the load on the product consists of, too. */
function someLead(): LeadDocument {
  const lead = aLead({ studioId, sourceId: randomUUID(), note: 'Would like to come on a weekday, after six.' });
  return leadDocument(lead, claimsOf(lead, { idempotencyKey: randomUUID() }));
}
