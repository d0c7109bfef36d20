/**
 * Checks the health of the core on this machine; exits with status 0 if it serves, else prints why not. For a container's health
 * check. A core with mutual TLS requires a certificate here, too: the one that a gateway's settings name.
 */
import { readFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { text } from 'node:stream/consumers';
import { errorSummary } from '../common/error-summary.ts';
import { ownAddress } from '../common/settings.ts';

const { CORE_TLS_CERT_FILE = '', CORE_CLIENT_CERT_FILE = '', CORE_CLIENT_KEY_FILE = '' } = process.env;
const url = `http${CORE_TLS_CERT_FILE && 's'}://${ownAddress('CORE', process.env)}`;

/** Returns why the core does not serve; undefined: it serves. Connect's JSON needs no package, whose loading would take longer than all else. */
async function reason(): Promise<string | undefined> {
  const session = connect(url, {
    // Its certificate has the name by which others reach it, and nothing secret is sent.
    rejectUnauthorized: false,
    ...(CORE_CLIENT_CERT_FILE && {
      cert: readFileSync(CORE_CLIENT_CERT_FILE),
      key: readFileSync(CORE_CLIENT_KEY_FILE),
    }),
  });
  // The request fails with it.
  session.on('error', () => {});
  const headers = { ':method': 'POST', ':path': '/grpc.health.v1.Health/Check', 'content-type': 'application/json' };
  const request = session.request(headers, { signal: AbortSignal.timeout(2000) });
  const answer = await text(request.end('{}'));
  return answer === '{"status":"SERVING"}' ? undefined : `it does not serve: its log says why; it answers ${answer}`;
}

const why = await reason().catch(errorSummary);
if (why !== undefined) console.error(`the core at ${url}: ${why}`);
process.exit(why === undefined ? 0 : 1);
