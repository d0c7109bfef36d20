/** Loads the leads that have changed since the last load into an SQLite file, for a nightly report. It may be killed and repeated. */
import { DatabaseSync } from 'node:sqlite';
import { enumToJson } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { createClient, type Interceptor } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { type Lead, LeadIntakeService, LeadStageSchema } from './gen/leadintake/v1/lead_intake_pb.ts';

const { CORE_ADDRESS, CORE_TOKEN, REPORT = 'report.db' } = process.env;

/** How far loads overlap: the clocks of cores differ, and a change can be read only shortly after its time. */
const OVERLAP_MS = 5 * 60_000;

const presentToken: Interceptor = (next) => (request) => {
  if (CORE_TOKEN) request.header.set('authorization', `Bearer ${CORE_TOKEN}`);
  return next(request);
};
const leads = createClient(
  LeadIntakeService,
  createGrpcTransport({ baseUrl: `http://${CORE_ADDRESS}`, interceptors: [presentToken], pingIntervalMs: 10_000 }),
);

const report = new DatabaseSync(REPORT, { timeout: 30_000 });
report.exec(`
  CREATE TABLE IF NOT EXISTS leads (studio_id TEXT, id TEXT, updated_ms INTEGER, stage TEXT, PRIMARY KEY (studio_id, id));
  CREATE TABLE IF NOT EXISTS loads (began_ms INTEGER)`);
// A lead that changes during the load comes again.
const put = report.prepare(`INSERT INTO leads VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET updated_ms = excluded.updated_ms, stage = excluded.stage
  WHERE excluded.updated_ms > updated_ms`);

const toRow = ({ studioId, id, updateTime, stage }: Lead) =>
  [studioId, id, updateTime ? timestampMs(updateTime) : 0, String(enumToJson(LeadStageSchema, stage))] as const;

const beganMs = Date.now();
const last = report.prepare('SELECT max(began_ms) AS ms FROM loads').get() as { ms: number | null };
// The first load reads all leads.
const filter = last.ms === null ? {} : { updateTime: { startTime: timestampFromMs(last.ms - OVERLAP_MS) } };
let count = 0;
for await (const message of leads.exportLeads({ filter })) {
  for (const lead of message.leads) put.run(...toRow(lead));
  count += message.leads.length;
}
// This comes last, so that an interrupted load begins again.
report.prepare('INSERT INTO loads VALUES (?)').run(beganMs);
console.log(`loaded ${count}`);
