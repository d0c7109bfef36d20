/** A container's health check: exits with status 0 when the gateway on this machine is ready, else prints why not. */
import { errorSummary } from '../common/error-summary.ts';
import { READY } from '../common/probe-answers.ts';
import { ownAddress } from '../common/settings.ts';

const url = `http://${ownAddress('GATEWAY', process.env)}/readyz`;
const why = await fetch(url, { signal: AbortSignal.timeout(2000) })
  .then(async (response) =>
    (await response.text()) === JSON.stringify(READY)
      ? undefined
      : `${response.status}, it is not ready: its log says why`,
  )
  .catch(errorSummary);
if (why !== undefined) console.error(`the gateway at ${url}: ${why}`);
process.exit(why === undefined ? 0 : 1);
