// Creates a lead with Node 20 or later: node create-lead.mjs LEAD_AS_JSON [IDEMPOTENCY_KEY]
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const ATTEMPTS = 6;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
// The service has only these codes. A firewall's response with another code is not a refusal.
const CODES = /^(integration_\w+|subscription_suspended|route_not_found|method_not_allowed|internal_error)$/;

/** Returns the lead; undefined when the contact already has an open one, which is a normal outcome. */
async function createLead(lead, idempotencyKey) {
  let last = 'no answer';
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const { status, type, body, retryAfter = 0 } = await send(lead, idempotencyKey);
    // Only the service's own response counts: proxies respond as well, even with JSON.
    const { id } = body?.lead ?? {};
    const isCreated = status === 201 && type === 'application/json' && typeof id === 'string' && UUID.test(id);
    const isProblem = status >= 400 && type === 'application/problem+json' && CODES.test(body?.code);
    if (isCreated) return body.lead;
    if (isProblem && body.code === 'integration_lead_already_open') return undefined;
    // A retry does not help for other 4xx, nor for a key that created a lead with other data (409): the response
    // states the problem.
    if (isProblem && status < 500 && status !== 408 && status !== 429) throw new Error(JSON.stringify(body));

    last = status ? `${status} ${isProblem ? body.code : 'not from the service'}` : 'no answer';
    const backOff = 2 ** attempt * (1 + Math.random() / 4);
    if (attempt + 1 < ATTEMPTS) await sleep(Math.min(Math.max(backOff, retryAfter), 86_400) * 1000);
  }
  const error = new Error(
    `no certain outcome (${last}): repeat later with the same data and the key ${idempotencyKey}`,
  );
  throw Object.assign(error, { exitCode: 75 });
}

async function send(lead, idempotencyKey) {
  const url = `${process.env.LEAD_INTAKE_URL?.replace(/\/$/, '')}/v1/integrations/leads`;
  if (!URL.canParse(url)) throw new Error('LEAD_INTAKE_URL must be the address of the service');
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${process.env.LEAD_INTAKE_KEY}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': idempotencyKey,
        // Firewalls refuse programs without a name.
        'User-Agent': 'website/1.0',
      },
      body: JSON.stringify(lead),
      // Following a redirect would send the key elsewhere, or turn the creation into a GET.
      redirect: 'manual',
      signal: AbortSignal.timeout(10_000),
    });
    const [type] = (response.headers.get('Content-Type') ?? '').toLowerCase().split(';');
    const text = await response.text();
    const retryAfter = Number(response.headers.get('Retry-After')) || 0;
    return { status: response.status, type, retryAfter, body: type.endsWith('json') ? JSON.parse(text) : undefined };
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
  // A setting of the studio decides whether it keeps the note of such a lead, so keep it yourself.
  if (!created && JSON.parse(lead).note) process.exitCode = 3;
} catch (error) {
  console.error(error.message);
  process.exitCode = error.exitCode ?? 1;
}
