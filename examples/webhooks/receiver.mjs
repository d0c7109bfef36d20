// Receives webhooks of Lead Intake on PORT, behind a proxy that terminates TLS. WEBHOOK_SECRET is one of the endpoint's secrets.
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.WEBHOOK_SECRET);
// Replace this with a table in your database that has the highest revision of each lead.
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
    // Verify the bytes as they came: JSON that was parsed and serialized again would have another signature.
    message = webhook.verify(Buffer.concat(chunks), request.headers);
  } catch {
    // A sender that disconnects early also ends up here, and must not end this program.
    response.writeHead(401, { connection: 'close' }).end();
    return;
  }
  const { leadId, revision, kinds } = message.data;
  // A change may come twice or late. The first revision of a lead is 0.
  if ((revisions.get(leadId) ?? -1n) < BigInt(revision)) {
    revisions.set(leadId, BigInt(revision));
    console.log(message.type, leadId, revision, kinds.join());
  }
  // Respond only now: a change that got a 2xx does not come again.
  response.writeHead(204).end();
}).listen(process.env.PORT, '127.0.0.1');
