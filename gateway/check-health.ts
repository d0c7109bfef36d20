/** Asks the gateway on this machine whether it is ready; status 0 when it is. For a container's health check. */
import { readSettings } from '../common/settings.ts';
import { gatewaySettings } from './config.ts';

// Nothing else of them: a file that cannot be used now is no fault of a gateway that holds to what it said before.
const { GATEWAY_PORT } = readSettings({ GATEWAY_PORT: gatewaySettings.GATEWAY_PORT }, process.env);
const isReady = await fetch(`http://127.0.0.1:${GATEWAY_PORT}/readyz`, { signal: AbortSignal.timeout(2000) }).then(
  ({ ok }) => ok,
  () => false,
);
process.exit(isReady ? 0 : 1);
