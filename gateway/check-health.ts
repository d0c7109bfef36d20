/** A container's health check: exits with status 0 when the gateway on this machine is ready. */
import { localHost, readSetting } from '../common/settings.ts';
import { gatewaySettings } from './config.ts';

// Only these settings: a file that cannot be read now does not concern a gateway that has already started with it.
const GATEWAY_HOST = readSetting('GATEWAY_HOST', gatewaySettings.GATEWAY_HOST, process.env);
const GATEWAY_PORT = readSetting('GATEWAY_PORT', gatewaySettings.GATEWAY_PORT, process.env);
const url = `http://${localHost(`${GATEWAY_HOST}`)}:${GATEWAY_PORT}/readyz`;
const isReady = await fetch(url, { signal: AbortSignal.timeout(2000) }).then(
  ({ ok }) => ok,
  () => false,
);
process.exit(isReady ? 0 : 1);
