/**
 * Checks the health of the core on this machine, for a container's health check. Exits with 0 if the core serves;
 * otherwise prints why not. With mutual TLS it presents the client certificate of the gateway's settings.
 */
import { readFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { text } from 'node:stream/consumers';
import { errorSummary } from '../common/error-summary.ts';
import { ownAddress } from '../common/settings.ts';

const { CORE_TLS_CERT_FILE = '', CORE_CLIENT_CERT_FILE = '', CORE_CLIENT_KEY_FILE = '' } = process.env;
const url = `http${CORE_TLS_CERT_FILE && 's'}://${ownAddress('CORE', process.env)}`;

/** Returns why the core does not serve; undefined: it serves. Calls over Connect's JSON, which needs no package. */
async function findFault(): Promise<string | undefined> {
  const session = connect(url, {
    // The certificate has the name by which others reach the core, not the local address. Nothing secret is sent.
    rejectUnauthorized: false,
    ...(CORE_CLIENT_CERT_FILE && {
      cert: readFileSync(CORE_CLIENT_CERT_FILE),
      key: readFileSync(CORE_CLIENT_KEY_FILE),
    }),
  });
  // A failed session also fails the request, which reports it.
  session.on('error', () => {});
  const headers = { ':method': 'POST', ':path': '/grpc.health.v1.Health/Check', 'content-type': 'application/json' };
  const request = session.request(headers, { signal: AbortSignal.timeout(2000) });
  const answer = await text(request.end('{}'));
  return answer === '{"status":"SERVING"}' ? undefined : `it does not serve, and its log says why: ${answer}`;
}

const fault = await findFault().catch(errorSummary);
if (fault !== undefined) console.error(`the core at ${url}: ${fault}`);
process.exit(fault === undefined ? 0 : 1);
