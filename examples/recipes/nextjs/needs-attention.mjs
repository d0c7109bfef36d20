import { openWebsite, outbox } from './lib/website.mjs';

// Prints the leads that need a person, with the reason. A cron job can mail it.
const { count, entries } = await outbox.needsAttention(await openWebsite());
console.log(`${count} leads need a person`);
for (const { idempotencyKey, state, createdAt, attempts, reason } of entries) {
  const why = reason ?? (attempts === 0 ? 'not tried yet' : 'no reason noted');
  console.log(`${idempotencyKey} ${state} since ${createdAt.toISOString()}: ${why}`);
}
