/** A container's health check: exits with status 0 when this machine's gateway is ready. Otherwise prints why it is not. */
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { text } from 'node:stream/consumers';
import { errorSummary } from '../common/error-summary.ts';
import { READY } from '../common/probe-answers.ts';
import { ownAddress } from '../common/settings.ts';

const url = `http://${ownAddress('GATEWAY', process.env)}/readyz`;

/** Returns why the gateway is not ready; undefined if it is. Uses its own agent, which ignores proxies from the environment. */
async function reason(): Promise<string | undefined> {
  const options = { agent: new Agent(), signal: AbortSignal.timeout(2000) };
  const [response] = await once(get(url, options), 'response');
  const answer = await text(response);
  return answer === JSON.stringify(READY) ? undefined : `${response.statusCode}, it is not ready: its log says why`;
}

const why = await reason().catch(errorSummary);
if (why !== undefined) console.error(`the gateway at ${url}: ${why}`);
process.exit(why === undefined ? 0 : 1);
