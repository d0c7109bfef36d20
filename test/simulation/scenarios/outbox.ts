import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { createLeadIntakeClient } from '../../../sdk/index.ts';
import { createOutbox } from '../../../sdk/outbox/index.ts';
import { times } from '../../support/builders.ts';
import { ownContact } from '../contacts.ts';
import { now } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import { lasting } from './choices.ts';
import { asFarAsDefinite, untilDefinite } from './definite-outcomes.ts';
import { lookAtLeads } from './operations.ts';
import { byFetch } from './requests.ts';
import { aScenario } from './scenario.ts';
import { makeSeparateStudio } from './separate-studio.ts';

const TABLE = 'example_com_leads';

/** How long a worker pauses between two passes: less than the client's deadline; milliseconds. */
const POLL_MS = 200;

/** More requests than a small quota allows, and longer than a lead may pause for it; milliseconds. */
const MANY = 40;
const MAX_PAUSE_MS = 5000;

const choice = fc.record({
  /** Each form's delay, its person (0: one who sends only this form), and whether its transaction commits. */
  forms: fc.array(
    fc.record({
      afterMs: fc.nat(300),
      person: fc.constantFrom(0, 0, 1, 2),
      isKept: fc.constantFrom(true, true, true, false),
    }),
    { minLength: 1, maxLength: 12 },
  ),
  /** Whether requests use up its key's quota, if that is small, for longer than its workers wait in a pass. */
  isPoor: fc.constantFrom(true, false, false),
  /** When workers are killed; some kills come while a request is in flight. */
  killedAfterMs: fc.array(fc.oneof(fc.nat(12), lasting(1, 1500)), { maxLength: 6 }),
});

type Choice = typeof choice extends fc.Arbitrary<infer Choice> ? Choice : never;

/**
 * Stores leads in a website's outbox, from which two workers send them; both are killed several times. Each person with a
 * committed form must get one lead. In the end, only rows that were refused because of an open lead may hold personal data.
 */
export const sendFromOutbox = aScenario({
  weight: 4,
  choice,
  run: (sim, given) => asFarAsDefinite(() => send(sim, given)),
});

async function send(sim: Simulation, { forms, isPoor, killedAfterMs }: Choice): Promise<void> {
  const begin = now();
  const studio = await makeSeparateStudio(sim);
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-website-'));
  const file = join(folder, 'website.db');
  const database = new DatabaseSync(file);
  const outbox = createOutbox({ table: TABLE });
  try {
    database.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000');
    await outbox.setUp(database);
    const selectKills = (half: number) => killedAfterMs.filter((_, index) => index % 2 === half);
    const workers = [0, 1].map((half) =>
      runWorker(sim, file, { apiKey: studio.secret, deadlineMs: isPoor ? 1000 : 8000 }, selectKills(half)),
    );
    const kept: { readonly displayName: string; readonly person: number | string }[] = [];
    const get = { name: 'get', leadId: sim.uuid('unknown lead') } as const;
    if (isPoor) await Promise.all(times(MANY, () => byFetch(sim, sim.world.urls[0] ?? '', studio.secret, get)));
    for (const [index, { afterMs, person, isKept }] of forms.entries()) {
      await sleep(afterMs);
      const displayName = `Form ${index} ${sim.personal}`;
      const who = person || `only ${index}`;
      const { type, value } = ownContact(sim.personal, sim.uuid('contact', studio.id, who));
      database.exec('BEGIN IMMEDIATE');
      const idempotencyKey = sim.uuid('key', studio.id, index);
      outbox.add(database, { displayName, contact: { type, value }, note: displayName }, { idempotencyKey });
      database.exec(isKept ? 'COMMIT' : 'ROLLBACK');
      if (isKept) kept.push({ displayName, person: who });
    }
    await Promise.all(workers.map(({ isSettled }) => isSettled));
    const states = () =>
      database.prepare(`SELECT state, capture, reason, attempts, next_attempt_at FROM ${TABLE}`).all();
    await untilDefinite(sim, `the outbox of ${studio.id} is empty`, async () => {
      const late = states().filter(
        ({ state, reason, attempts, next_attempt_at: at }) =>
          state === 'waiting' &&
          `${reason}`.startsWith('429') &&
          (Number(at) > Date.now() + MAX_PAUSE_MS ||
            (Number(attempts) > killedAfterMs.length && !sim.isDisturbedSince(begin))),
      );
      if (late.length > 0)
        sim.history.fail(`the outbox of ${studio.id} waits too long, or miscounts: ${JSON.stringify(late)}`);
      // Ends all waits, and the leases of killed workers.
      database.exec(`UPDATE ${TABLE} SET next_attempt_at = 0 WHERE state = 'waiting'`);
      await sleep(2 * POLL_MS);
      return states().every(({ state }) => state !== 'waiting') || undefined;
    });
    for (const { kill } of workers) kill();
    // The data of a form is retained if its person has an open lead by another form.
    const isSettled = ({ state, capture }: ReturnType<typeof states>[number]) =>
      state === 'already_open' ? capture !== null : state === 'delivered' && capture === null;
    const wrong = states().filter((row) => !isSettled(row));
    if (wrong.length > 0) sim.history.fail(`the outbox of ${studio.id} wrongly has ${JSON.stringify(wrong)}`);
    const leads = await untilDefinite(sim, `the leads of ${studio.id} are listed`, () =>
      lookAtLeads(sim, { id: studio.id }, sim.crmAt(0), 1).catch(() => undefined),
    );
    const people = new Set(kept.map(({ person }) => person)).size;
    const known = new Set(kept.map(({ displayName }) => displayName));
    const names = leads.map(({ displayName }) => displayName);
    const delivered = states().filter(({ state }) => state === 'delivered').length;
    if (leads.length !== people || delivered !== people || !names.every((name) => known.has(name)))
      sim.history.fail(
        `the outbox of ${studio.id} has made ${names.join() || 'nothing'} of ${JSON.stringify(kept)}, ${delivered} delivered`,
      );
  } finally {
    database.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs a worker that is killed after each of these times, and then restarted. */
function runWorker(
  sim: Simulation,
  file: string,
  options: { readonly apiKey: string; readonly deadlineMs: number },
  killedAfterMs: readonly number[],
) {
  const begin = () =>
    sim.world.begin('worker', async () => {
      const connection = new DatabaseSync(file);
      connection.exec('PRAGMA busy_timeout = 5000');
      const client = createLeadIntakeClient({ baseUrl: sim.world.urls[0] ?? '', ...options });
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
