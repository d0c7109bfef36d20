// Creates a lead with Node 20 or later: node create-lead.mjs LEAD_AS_JSON [IDEMPOTENCY_KEY]
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const ATTEMPTS = 6;

/** Returns the lead; undefined when the contact already has an open one, which is a normal outcome. */
async function createLead(lead, idempotencyKey) {
  let last = 'no answer';
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const { status, body, retryAfter = 0 } = await send(lead, idempotencyKey);
    if (status === 201) return body.lead;
    if (body?.code === 'integration_lead_already_open') return undefined;
    // A retry does not help for other 4xx, nor for a key that created a lead with other data (409): the response
    // states the problem.
    if (status < 500 && status !== 408 && status !== 429) throw new Error(JSON.stringify(body));

    last = `${status ?? ''} ${body?.code ?? 'no answer'}`;
    const backOff = 2 ** attempt * (1 + Math.random() / 4);
    if (attempt + 1 < ATTEMPTS) await sleep(Math.max(backOff, retryAfter) * 1000);
  }
  const error = new Error(
    `no certain outcome (${last}): repeat later with the same data and the key ${idempotencyKey}`,
  );
  throw Object.assign(error, { exitCode: 75 });
}

async function send(lead, idempotencyKey) {
  try {
    const response = await fetch(`${process.env.LEAD_INTAKE_URL}/v1/integrations/leads`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${process.env.LEAD_INTAKE_KEY}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': idempotencyKey,
      },
      body: JSON.stringify(lead),
      signal: AbortSignal.timeout(10_000),
    });
    const retryAfter = Number(response.headers.get('Retry-After') ?? 0);
    return { status: response.status, retryAfter, body: await response.json() };
  } catch {
    // The lead may have been created nevertheless; a retry with the same key finds out.
    return {};
  }
}

// One key per lead, the same for every retry: store it with the lead until there is a response.
const [lead, idempotencyKey = randomUUID()] = process.argv.slice(2);
try {
  const created = await createLead(JSON.parse(lead), idempotencyKey);
  console.log(created ? JSON.stringify({ lead: created }) : 'open already');
} catch (error) {
  console.error(error.message);
  process.exitCode = error.exitCode ?? 1;
}
