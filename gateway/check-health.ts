/** A container's health check: exits with status 0 when the gateway on this machine is ready, else prints why not. */
import { errorSummary } from '../common/error-summary.ts';
import { localHost, readSetting } from '../common/settings.ts';
import { gatewaySettings } from './config.ts';

// Only these settings: a file that cannot be read now does not concern a gateway that has already started with it.
const GATEWAY_HOST = readSetting('GATEWAY_HOST', gatewaySettings.GATEWAY_HOST, process.env);
const GATEWAY_PORT = readSetting('GATEWAY_PORT', gatewaySettings.GATEWAY_PORT, process.env);
const url = `http://${localHost(`${GATEWAY_HOST}`)}:${GATEWAY_PORT}/readyz`;
const why = await fetch(url, { signal: AbortSignal.timeout(2000) }).then(
  ({ ok, status }) => (ok ? undefined : `${status}, it is not ready: its log says why`),
  errorSummary,
);
if (why !== undefined) console.error(`the gateway at ${url}: ${why}`);
process.exit(why === undefined ? 0 : 1);
