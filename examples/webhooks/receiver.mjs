// Receives webhooks of Lead Intake at PORT, behind a proxy that ends TLS. WEBHOOK_SECRET: a secret of the endpoint.
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.WEBHOOK_SECRET);
// In place of a table of your database, which has the highest revision of each lead.
const revisions = new Map();
const MAX_BYTES = 1024 * 1024;

createServer(async (request, response) => {
  let message;
  try {
    const chunks = [];
    let size = 0;
    for await (const chunk of request) {
      size += chunk.length;
      if (size > MAX_BYTES) throw new Error('too long');
      chunks.push(chunk);
    }
    // The bytes as they came: parsed and written again, they would not have this signature.
    message = webhook.verify(Buffer.concat(chunks), request.headers);
  } catch {
    // Also where the peer went away in the middle, which must not end this program.
    response.writeHead(401, { connection: 'close' }).end();
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
