/**
 * Maintains a copy of all leads in an SQLite file until stopped. It may be killed at any time and run concurrently. As a named
 * consumer it sets aside leads that it cannot store. After a restore of the database, it deletes the leads that the restore lost.
 */
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { enumToJson } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
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
  studio_id TEXT, id TEXT, revision INTEGER, display_name TEXT, contact TEXT, stage TEXT,
  came_at INTEGER DEFAULT (unixepoch()), PRIMARY KEY (studio_id, id));
  CREATE TABLE IF NOT EXISTS epochs (epoch INTEGER PRIMARY KEY, compared INTEGER DEFAULT 0)`);
// A single statement, so that an older state never overwrites a newer one, and a lead that a restore lost does not come
// back. An erased lead has no name or contact.
const put = copy.prepare(`INSERT INTO leads (studio_id, id, revision, display_name, contact, stage)
  SELECT ?, ?, ?, ?, ?, ? WHERE ? = (SELECT max(epoch) FROM epochs)
  ON CONFLICT DO UPDATE SET revision = excluded.revision, display_name = excluded.display_name,
    contact = excluded.contact, stage = excluded.stage
  WHERE excluded.revision > revision`);
const begin = copy.prepare('INSERT OR IGNORE INTO epochs (epoch) VALUES (?)');
const isCompared = copy.prepare('SELECT compared FROM epochs WHERE epoch = ?');
const perhapsLost = copy.prepare('SELECT id FROM leads WHERE studio_id = ? AND came_at >= ?');
const remove = copy.prepare('DELETE FROM leads WHERE studio_id = ? AND id = ?');
const isLatest = copy.prepare('SELECT ? = max(epoch) AS latest FROM epochs');
const end = copy.prepare('UPDATE epochs SET compared = 1 WHERE epoch = ?');

/** Deletes the leads that the database has lost, if it was restored and nobody has done so since. */
async function compare(epoch: bigint, restoredTo: Timestamp | undefined): Promise<void> {
  begin.run(epoch);
  if (isCompared.get(epoch)?.compared) return;
  for (const { studio_id } of restoredTo ? copy.prepare('SELECT DISTINCT studio_id FROM leads').all() : []) {
    const studioId = String(studio_id);
    const ids = perhapsLost.all(studioId, restoredTo?.seconds ?? 0n).map(({ id }) => String(id));
    for (let first = 0; first < ids.length; first += 500) {
      const request = { studioId, leadIds: ids.slice(first, first + 500) };
      const { missingLeadIds } = await consumers.findMissingLeads(request, { timeoutMs: 5000 });
      for (const id of missingLeadIds) remove.run(studioId, id);
    }
  }
  end.run(epoch);
}

function apply({ lead, revision }: LeadChange, epoch: bigint): void {
  if (!lead) return;
  const { studioId, id, displayName, contact, stage } = lead;
  const values = [displayName, contact?.value.value ?? '', String(enumToJson(LeadStageSchema, stage))];
  put.run(studioId, id, revision, ...values, epoch);
}

/** Returns when a failed change comes again: after minutes, then hours, and from the tenth time on only when an operator asks. */
const retryTimeAfter = (attempts: number) =>
  attempts < 9 ? timestampFromMs(Date.now() + 60_000 * 2 ** attempts) : undefined;

async function take(changes: readonly LeadChange[], epoch: bigint): Promise<void> {
  const acknowledgements = [];
  const failed = [];
  for (const change of changes) {
    const { lead, revision, attempts } = change;
    const state = { studioId: lead?.studioId ?? '', leadId: lead?.id ?? '', revision };
    try {
      apply(change, epoch);
      acknowledgements.push(state);
    } catch (error) {
      if (consumer === '') throw error;
      failed.push({ ...state, reason: 'CANNOT_STORE', retryTime: retryTimeAfter(attempts) });
    }
  }
  // If another program on this copy already knows of a restore, nothing was written.
  if (!isLatest.get(epoch)?.latest)
    return console.error('the database is older than this copy: run `lead-intake restored`');
  // Acknowledged last, because an acknowledged lead is not sent again.
  await leads.acknowledgeLeadChanges({ consumer, acknowledgements }, { timeoutMs: 5000 });
  if (failed.length > 0) await consumers.setAsideLeadChanges({ consumer, leads: failed }, { timeoutMs: 5000 });
}

for (;;) {
  try {
    for await (const { changes, databaseEpoch, restoredToTime } of leads.watchLeadChanges({ consumer })) {
      await compare(databaseEpoch, restoredToTime);
      await take(changes, databaseEpoch);
    }
  } catch (error) {
    // Nothing is lost: unacknowledged leads are sent again.
    console.error(ConnectError.from(error).message);
  }
  await sleep(1000);
}
