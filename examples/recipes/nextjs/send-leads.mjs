import { createLeadIntakeClient } from 'lead-intake-sdk';
import { openWebsite, outbox } from './lib/website.mjs';

// The worker: sends the stored leads until SIGTERM or Ctrl-C, which stop it between two leads.
const { LEAD_INTAKE_URL, LEAD_INTAKE_KEY } = process.env;
if (!LEAD_INTAKE_URL || !LEAD_INTAKE_KEY) throw new Error('Set LEAD_INTAKE_URL and LEAD_INTAKE_KEY.');

// The outbox itself retries.
const leads = createLeadIntakeClient({ baseUrl: LEAD_INTAKE_URL, apiKey: LEAD_INTAKE_KEY, deadlineMs: 10_000 });
const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());
await outbox.run(await openWebsite(), leads, {
  signal: stop.signal,
  onSettled: ({ idempotencyKey, outcome, leadId }) => console.log(`${idempotencyKey} ${outcome} ${leadId ?? ''}`),
});
