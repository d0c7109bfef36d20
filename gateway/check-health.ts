/** Asks the gateway on this machine whether it is ready; status 0 when it is. For a container's health check. */
import { readGatewayConfig } from './config.ts';

const { GATEWAY_PORT } = readGatewayConfig(process.env);
const isReady = await fetch(`http://127.0.0.1:${GATEWAY_PORT}/readyz`, { signal: AbortSignal.timeout(2000) }).then(
  ({ ok }) => ok,
  () => false,
);
process.exit(isReady ? 0 : 1);
