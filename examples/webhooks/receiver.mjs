// Receives webhooks of Lead Intake at PORT, behind a proxy that ends TLS. WEBHOOK_SECRET: a secret of the endpoint.
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.WEBHOOK_SECRET);
// In place of a table of your database, which has the highest revision of each lead.
const revisions = new Map();

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  // The bytes as they came: parsed and written again, they would not have this signature.
  const body = Buffer.concat(chunks);
  let message;
  try {
    message = webhook.verify(body, request.headers);
  } catch {
    response.writeHead(401).end();
    return;
  }
  const { leadId, revision, kinds } = message.data;
  // A change may come twice, or late. The first revision of a lead is 0.
  if ((revisions.get(leadId) ?? -1n) < BigInt(revision)) {
    revisions.set(leadId, BigInt(revision));
    console.log(message.type, leadId, revision, kinds.join());
  }
  // Only now: what is answered with 2xx does not come again.
  response.writeHead(204).end();
}).listen(process.env.PORT, '127.0.0.1');
