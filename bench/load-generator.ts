/**
 * The load generator, a process that drives a target.
 *
 *   TARGET='{"url":"http://…","secret":"lik_…","sourceId":"…"}' [KNOWN=FILE] node bench/load-generator.ts
 *
 * KNOWN is a file with the leads to read, as JSON; without it, the generator creates leads first.
 *
 * It shares the processors with the target, so its own processor time matters. Against a trivial server on the same machine, a creation
 * took it 28 µs, half of them in the kernel. autocannon 9 took 90 µs, so this generator implements HTTP itself (connection.ts).
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Connection, openConnection } from './connection.ts';
import { drive } from './drive.ts';
import { serveLoads } from './processes.ts';
import { EXPECTED, type KnownLeads, LEADS, PAGE_SIZE, type Scenario, type Target, Workload } from './workload.ts';

/** The connections on which leads are created before the load. */
const CONNECTIONS = 40;

const { TARGET = '{}', KNOWN } = process.env;
const target: Target = JSON.parse(TARGET);
const url = new URL(target.url);
const known = KNOWN === undefined ? await createLeads() : JSON.parse(readFileSync(KNOWN, 'utf8'));
const workload = new Workload(target, known);
serveLoads((scenario, pace) =>
  drive(url, { next: () => workload.request(scenario), expected: EXPECTED[scenario] }, pace),
);

async function createLeads(): Promise<KnownLeads> {
  const requests = new Workload(target);
  const leads: KnownLeads['leads'][number][] = [];
  const createSome = async () => {
    const connection = await openConnection(url);
    for (let created = 0; created < LEADS / CONNECTIONS; created += 1) {
      const idempotencyKey = randomUUID();
      const { lead } = await send(connection, 'create', requests.creation(idempotencyKey));
      leads.push({ id: lead.id, idempotencyKey });
    }
    connection.close('the leads were created');
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, createSome));

  const connection = await openConnection(url);
  const cursors: string[] = [];
  while (cursors.length < LEADS / PAGE_SIZE - 1) {
    const { nextCursor } = await send(connection, 'list', requests.page(cursors.at(-1) ?? null));
    cursors.push(nextCursor);
  }
  connection.close('the pages are known');
  return { leads, cursors };
}

/** Sends a request and returns the JSON of the response; rejects when its status is not an expected one. */
async function send(connection: Connection, scenario: Scenario, request: Buffer) {
  const { status, body } = await connection.send(request);
  if (!EXPECTED[scenario].includes(status)) throw new Error(`unexpected response ${status}: ${body}`);
  return JSON.parse(body.toString());
}
