import { createLeadIntakeClient } from 'lead-intake-sdk';
import { openWebsite, outbox } from './lib/website.mjs';

// The commands for the worker, for cron, and for a person: node leads.mjs work, send, report, retry KEY, discard KEY
const [command, key] = process.argv.slice(2);

/** Returns a client with few retries, because the outbox itself retries. */
const client = () => {
  const { LEAD_INTAKE_URL: baseUrl, LEAD_INTAKE_KEY: apiKey } = process.env;
  return createLeadIntakeClient({ baseUrl, apiKey, deadlineMs: 10_000 });
};

const COMMANDS = {
  /** Sends leads until SIGTERM or Ctrl-C, which stop it between two leads. */
  async work(database) {
    const stop = new AbortController();
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());
    await outbox.run(database, client(), { signal: stop.signal });
  },
  send: (database) => outbox.deliver(database, client()),
  /** Prints the leads that need attention, with the visitors' messages; nothing when there are none. */
  async report(database) {
    const { count, entries } = await outbox.needsAttention(database);
    for (const { idempotencyKey, state, createdAt, reason, capture } of entries) {
      console.log(`${idempotencyKey}, from ${createdAt.toISOString()}, ${state}: ${reason ?? 'not tried yet'}`);
      console.log(`  ${JSON.stringify(capture)}`);
    }
    if (count > entries.length) console.log(`and more: ${count} in all`);
  },
  retry: (database) => outbox.retry(database, key),
  discard: (database) => outbox.discard(database, key),
};

try {
  if (!Object.hasOwn(COMMANDS, command ?? '')) throw new Error('work, send, report, retry KEY or discard KEY');
  await COMMANDS[command](await openWebsite());
} catch (error) {
  // Prints one line, for example for a mistyped key. All leads stay stored.
  console.error(`leads.mjs: ${error.message}`);
  process.exitCode = 1;
}
