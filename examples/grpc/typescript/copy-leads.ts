/**
 * Maintains a copy of all leads in an SQLite file until stopped. It may be killed at any time and run concurrently. As a named
 * consumer it sets aside what it cannot store.
 */
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { enumToJson } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { ConsumerService } from './gen/leadintake/v1/consumer_pb.ts';
import { type LeadChange, LeadIntakeService, LeadStageSchema } from './gen/leadintake/v1/lead_intake_pb.ts';

const { CORE_ADDRESS, CORE_TOKEN, COPY = 'copy.db', CONSUMER: consumer = '' } = process.env;

const presentToken: Interceptor = (next) => (request) => {
  if (CORE_TOKEN) request.header.set('authorization', `Bearer ${CORE_TOKEN}`);
  return next(request);
};
const transport = createGrpcTransport({
  baseUrl: `http://${CORE_ADDRESS}`,
  interceptors: [presentToken],
  pingIntervalMs: 10_000,
});
const leads = createClient(LeadIntakeService, transport);
const consumers = createClient(ConsumerService, transport);

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

/** When a change that failed comes again: after minutes, then hours, at the tenth time when an operator takes it back. */
const retryTimeAfter = (attempts: number) =>
  attempts < 9 ? timestampFromMs(Date.now() + 60_000 * 2 ** attempts) : undefined;

async function take(changes: readonly LeadChange[]): Promise<void> {
  const acknowledgements = [];
  const failed = [];
  for (const change of changes) {
    const { lead, revision, attempts } = change;
    const state = { studioId: lead?.studioId ?? '', leadId: lead?.id ?? '', revision };
    try {
      apply(change);
      acknowledgements.push(state);
    } catch (error) {
      if (consumer === '') throw error;
      failed.push({ ...state, reason: 'CANNOT_STORE', retryTime: retryTimeAfter(attempts) });
    }
  }
  // Acknowledged last, because an acknowledged lead is not sent again.
  await leads.acknowledgeLeadChanges({ consumer, acknowledgements }, { timeoutMs: 5000 });
  if (failed.length > 0) await consumers.setAsideLeadChanges({ consumer, leads: failed }, { timeoutMs: 5000 });
}

for (;;) {
  try {
    for await (const { changes } of leads.watchLeadChanges({ consumer })) await take(changes);
  } catch (error) {
    // Nothing is lost: unacknowledged leads are sent again.
    console.error(ConnectError.from(error).message);
  }
  await sleep(1000);
}
