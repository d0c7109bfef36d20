import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { createLeadIntakeClient } from '../../../sdk/index.ts';
import { createOutbox } from '../../../sdk/outbox/index.ts';
import { ownContact } from '../contacts.ts';
import type { Simulation } from '../simulation.ts';
import { lasting } from './choices.ts';
import { asFarAsDefinite, untilDefinite } from './definite-outcomes.ts';
import { lookAtLeads } from './operations.ts';
import { aScenario } from './scenario.ts';
import { makeSeparateStudio } from './separate-studio.ts';

const TABLE = 'example_com_leads';

/** Shorter than the deadline of the client: a pause between two passes of a worker; milliseconds. */
const POLL_MS = 200;

const choice = fc.record({
  /** How long after the one before each form is sent, and whether it commits. */
  forms: fc.array(fc.record({ afterMs: fc.nat(300), isKept: fc.constantFrom(true, true, true, false) }), {
    minLength: 1,
    maxLength: 12,
  }),
  killedAfterMs: fc.array(lasting(1, 1500), { maxLength: 6 }),
});

type Choice = typeof choice extends fc.Arbitrary<infer Choice> ? Choice : never;

/**
 * A website keeps leads in an outbox of its own, and two workers, each killed some times, send them: what a form has committed
 * becomes one lead, what it has rolled back none, and the table then holds nobody's data.
 */
export const sendFromOutbox = aScenario({
  weight: 2,
  choice,
  run: (sim, given) => asFarAsDefinite(() => send(sim, given)),
});

async function send(sim: Simulation, { forms, killedAfterMs }: Choice): Promise<void> {
  const studio = await makeSeparateStudio(sim);
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-website-'));
  const file = join(folder, 'website.db');
  const database = new DatabaseSync(file);
  const outbox = createOutbox({ table: TABLE });
  try {
    database.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000');
    await outbox.setUp(database);
    const killsOf = (half: number) => killedAfterMs.filter((_, index) => index % 2 === half);
    const workers = [0, 1].map((half) => work(sim, file, studio.secret, killsOf(half)));
    const kept: string[] = [];
    for (const [index, { afterMs, isKept }] of forms.entries()) {
      await sleep(afterMs);
      const displayName = `Form ${index} ${sim.personal}`;
      const { type, value } = ownContact(sim.personal, sim.uuid('contact', studio.id, index));
      database.exec('BEGIN IMMEDIATE');
      const idempotencyKey = sim.uuid('key', studio.id, index);
      outbox.add(database, { displayName, contact: { type, value } }, { idempotencyKey });
      database.exec(isKept ? 'COMMIT' : 'ROLLBACK');
      if (isKept) kept.push(displayName);
    }
    await Promise.all(workers.map(({ isSettled }) => isSettled));
    const states = () => database.prepare(`SELECT state, capture FROM ${TABLE}`).all();
    await untilDefinite(sim, `the outbox of ${studio.id} is empty`, async () => {
      // The time of the leases that killed workers have left.
      database.exec(`UPDATE ${TABLE} SET next_attempt_at = 0 WHERE state = 'waiting'`);
      await sleep(2 * POLL_MS);
      return states().every(({ state }) => state !== 'waiting') || undefined;
    });
    for (const { kill } of workers) kill();
    const left = states().filter(({ state, capture }) => state !== 'delivered' || capture !== null);
    if (left.length > 0) sim.history.fail(`the outbox of ${studio.id} keeps ${JSON.stringify(left)}`);
    const leads = await untilDefinite(sim, `the leads of ${studio.id} are listed`, () =>
      lookAtLeads(sim, { id: studio.id }, sim.crmAt(0), 1).catch(() => undefined),
    );
    const names = leads.map(({ displayName }) => displayName).toSorted();
    if (names.join() !== kept.toSorted().join())
      sim.history.fail(
        `the outbox of ${studio.id} has made ${names.join() || 'nothing'} of ${kept.join() || 'nothing'}`,
      );
  } finally {
    database.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A worker that is killed after each of these times, and then started again. */
function work(sim: Simulation, file: string, apiKey: string, killedAfterMs: readonly number[]) {
  const begin = () =>
    sim.world.begin('worker', async () => {
      const connection = new DatabaseSync(file);
      connection.exec('PRAGMA busy_timeout = 5000');
      const client = createLeadIntakeClient({ baseUrl: sim.world.urls[0] ?? '', apiKey, deadlineMs: 8000 });
      const { signal } = new AbortController();
      await createOutbox({ table: TABLE }).run(connection, client, { signal, pollMs: POLL_MS, onError: () => {} });
    });
  let running = begin();
  const isSettled = (async () => {
    for (const afterMs of killedAfterMs) {
      await sleep(afterMs);
      running?.kill();
      running = begin();
    }
  })();
  return { isSettled, kill: () => running?.kill() };
}
