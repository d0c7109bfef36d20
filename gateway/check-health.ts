/** A container's health check: exits with status 0 when the gateway on this machine is ready. */
import { readSetting } from '../common/settings.ts';
import { gatewaySettings } from './config.ts';

// Only this setting: a file that cannot be read now does not concern a gateway that has already started with it.
const GATEWAY_PORT = readSetting('GATEWAY_PORT', gatewaySettings.GATEWAY_PORT, process.env);
const isReady = await fetch(`http://127.0.0.1:${GATEWAY_PORT}/readyz`, { signal: AbortSignal.timeout(2000) }).then(
  ({ ok }) => ok,
  () => false,
);
process.exit(isReady ? 0 : 1);
