/**
 * The floor on MongoDB: the bare driver with one command per request, and the product's documents, indexes and concerns, but without
 * HTTP or rules.
 *
 *   DATABASE_URL=mongodb://… node bench/bare-driver.ts
 */
import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { HIGHEST_ID, LOWEST_ID } from '../src/domain/new-id.ts';
import { createIndex, INDEXES } from '../src/store/mongo/indexes.ts';
import { type LeadDocument, leadDocument } from '../src/store/mongo/lead-documents.ts';
import { leadKey } from '../src/store/mongo/queries.ts';
import { aLead, keysFor, times } from '../test/support/builders.ts';
import { callAtPace } from './drive.ts';
import { serveLoads } from './processes.ts';
import { captureFor, LEADS, PAGE_SIZE, type Scenario } from './workload.ts';

/** The studio of all leads, and their source. */
const studioId = 'bench';
const sourceId = randomUUID();

const client = new MongoClient(process.env.DATABASE_URL ?? '', {
  writeConcern: { w: 'majority', journal: true },
  readConcern: { level: 'majority' },
});
const leads = client.db().collection<LeadDocument>('leads');

/** The leads that can be read. */
const known = times(LEADS, someLead);

/** The command of each scenario. */
const COMMANDS: Readonly<Partial<Record<Scenario, () => Promise<unknown>>>> = {
  create: () => leads.insertOne(someLead()),
  replay: () => leads.findOne({ studioId, 'idempotency.key': anyKnown().idempotency.key }),
  get: () => leads.findOne({ _id: anyKnown()._id }),
  list: () => {
    const end = Math.random() < 0.5 ? leadKey(studioId, HIGHEST_ID) : anyKnown()._id;
    const _id = { $gte: leadKey(studioId, LOWEST_ID), $lt: end };
    // One more than the page, to see whether there is a next page.
    const limit = PAGE_SIZE + 1;
    return leads.find({ studioId, _id }).sort({ _id: -1 }).limit(limit).toArray();
  },
};

for (const index of INDEXES) await createIndex(client.db(), index);
await leads.insertMany(known);
serveLoads((scenario, pace) => {
  const command = COMMANDS[scenario] ?? (() => Promise.reject(new Error(`no command for ${scenario}`)));
  const call = () => command().then(() => undefined, String);
  return callAtPace(Array(pace.connections).fill(call), pace);
});

function anyKnown(): LeadDocument {
  return known[Math.floor(Math.random() * known.length)] as LeadDocument;
}

/** Returns the same lead as the load on the product creates. */
function someLead(): LeadDocument {
  const idempotencyKey = randomUUID();
  const lead = aLead({ studioId, ...captureFor(idempotencyKey, sourceId) });
  return leadDocument(lead, keysFor(lead, { idempotencyKey }));
}
