import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { GATEWAY_AFTER_CLOSE_MS } from '../common/deadlines.ts';
import { stopListening } from '../common/stop-listening.ts';
import type { GatewayConfig } from './config.ts';

/**
 * Drains a gateway that reports itself as stopping, closes its port, and waits until every accepted request is answered,
 * for at most GATEWAY_AFTER_CLOSE_MS.
 */
export async function drainAndClose(app: FastifyInstance, config: GatewayConfig): Promise<void> {
  const connectionsEnded = config.REUSE_PORT && stopListening(app.server);
  // Load balancers must see /readyz fail, and keep-alive connections close, before the port closes.
  await sleep(config.SHUTDOWN_DRAIN_MS);
  const timer = setTimeout(() => app.server.closeAllConnections(), GATEWAY_AFTER_CLOSE_MS);
  await app.close();
  await connectionsEnded;
  clearTimeout(timer);
}
