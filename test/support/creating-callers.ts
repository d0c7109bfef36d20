/**
 * Callers in their own process, `creating-callers.ts URL KEY SOURCE`. They create leads one after the other, half of
 * them over new connections, and retry a failed request with its key. They print each hundredth creation. On SIGTERM
 * they stop and print how many requests failed and how, except if Redis was late.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sendAgainIfLate } from './late-counts.ts';

const CALLERS = 8;
const [url = '', secret, sourceId] = process.argv.slice(2);
const failed: Record<string, number> = {};
const sendCounted = sendAgainIfLate();
let created = 0;
let isOver = false;
process.on('SIGTERM', () => {
  isOver = true;
});

await Promise.all(
  Array.from({ length: CALLERS }, async (_, caller) => {
    for (let lead = 0; !isOver; lead += 1) {
      await create(caller % 2 === 0 ? 'close' : 'keep-alive', `caller-${caller}-${lead}@example.com`);
      created += 1;
      if (created % 100 === 0) console.log(`created ${created}`);
    }
  }),
);
console.log(JSON.stringify({ created, failed }));

async function create(connection: string, email: string): Promise<void> {
  const headers = {
    authorization: `Bearer ${secret}`,
    connection,
    'content-type': 'application/json',
    'idempotency-key': crypto.randomUUID(),
  };
  const contact = { type: 'email', value: email };
  const body = JSON.stringify({ displayName: 'Ada Lovelace', contact, sourceId });
  for (;;) {
    const send = () => fetch(`${url}/v1/integrations/leads`, { method: 'POST', headers, body });
    const outcome = await sendCounted(send).then(
      async (response) => {
        await response.arrayBuffer();
        return String(response.status);
      },
      () => 'no answer',
    );
    if (outcome === '201') return;
    failed[outcome] = (failed[outcome] ?? 0) + 1;
    await sleep(50);
  }
}
