/** Maintains a copy of all leads in an SQLite file until stopped. It may be killed at any time and run concurrently. */
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { enumToJson } from '@bufbuild/protobuf';
import { ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { type LeadChange, LeadIntakeService, LeadStageSchema } from './gen/leadintake/v1/lead_intake_pb.ts';

const { CORE_ADDRESS, CORE_TOKEN, COPY = 'copy.db' } = process.env;

const presentToken: Interceptor = (next) => (request) => {
  if (CORE_TOKEN) request.header.set('authorization', `Bearer ${CORE_TOKEN}`);
  return next(request);
};
const leads = createClient(
  LeadIntakeService,
  createGrpcTransport({ baseUrl: `http://${CORE_ADDRESS}`, interceptors: [presentToken], pingIntervalMs: 10_000 }),
);

const copy = new DatabaseSync(COPY, { timeout: 30_000 });
copy.exec(`CREATE TABLE IF NOT EXISTS leads (
  studio_id TEXT, id TEXT, revision INTEGER, display_name TEXT, contact TEXT, stage TEXT, PRIMARY KEY (studio_id, id))`);
// A single statement, so that an older state never overwrites a newer one. An erased lead has no name or contact.
const put = copy.prepare(`INSERT INTO leads VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET revision = excluded.revision, display_name = excluded.display_name,
    contact = excluded.contact, stage = excluded.stage
  WHERE excluded.revision > revision`);

function apply({ lead, revision }: LeadChange): void {
  if (!lead) return;
  const { studioId, id, displayName, contact, stage } = lead;
  put.run(studioId, id, revision, displayName, contact?.value.value ?? '', String(enumToJson(LeadStageSchema, stage)));
}

for (;;) {
  try {
    for await (const { changes } of leads.watchLeadChanges({})) {
      for (const change of changes) apply(change);
      // Acknowledged last, because an acknowledged lead is not sent again.
      const acknowledgements = changes.map(({ lead, revision }) => ({
        studioId: lead?.studioId ?? '',
        leadId: lead?.id ?? '',
        revision,
      }));
      await leads.acknowledgeLeadChanges({ acknowledgements }, { timeoutMs: 5000 });
    }
  } catch (error) {
    // Nothing is lost: unacknowledged leads are sent again.
    console.error(ConnectError.from(error).message);
  }
  await sleep(1000);
}
