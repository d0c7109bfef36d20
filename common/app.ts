import { type AddressInfo, Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FastifyInstance, LogController } from 'fastify';
import type { Logger } from 'pino';
import { type Metrics, serveMetrics } from './metrics.ts';
import type { Readiness } from './readiness.ts';
import type { Running } from './run-until-stopped.ts';
import { type Address, localHost } from './settings.ts';

/** Fastify options that gateway and core share. */
export const appOptions = (log: Logger) => ({
  loggerInstance: log,
  // A child logger per request would cost as much as the line that it writes.
  childLoggerFactory: <Parent>(parent: Parent): Parent => parent,
  // Gateway and core write log lines of their own.
  logController: new LogController({ disableRequestLogging: true }),
  exposeHeadRoutes: false,
  // A stopping process serves requests in flight instead of refusing them.
  return503OnClosing: false,
});

interface Serving {
  readonly address: Address;
  /** Whether other processes also listen on the port. */
  readonly reusePort: boolean;
  readonly isSecure: boolean;
  readonly metrics: { readonly registry: Metrics } | undefined;
  readonly metricsAddress: Address | undefined;
  /** Dependencies that are checked once the process listens. A process that is still starting would mistake its own delay for a fault. */
  readonly dependencies: readonly Readiness[];
  /** Aborted when the process begins to stop. From then on it reports not ready, but keeps serving for `drainMs`. */
  readonly stopping: AbortController;
  readonly drainMs: number;
}

/**
 * Listens, and returns how to stop the process. Stopping answers every accepted request, then runs the app's `onClose` hooks, last added
 * first. They also run when the process cannot listen.
 *
 * @throws Error if a port is taken, or a plugin cannot be loaded
 */
export async function serve(
  app: FastifyInstance,
  { address, reusePort, isSecure, metrics, metricsAddress, dependencies, stopping, drainMs }: Serving,
): Promise<Running> {
  const scheme = isSecure ? 'https:' : 'http:';
  const listenTextResolver = (url: string) => `Server listening at ${url.replace('http:', scheme)}`;
  let connectionsEnded: Promise<void> | undefined;
  try {
    const metricsServer = await serveMetrics(metrics?.registry, metricsAddress, app.log as Logger);
    app.addHook('onClose', async () => {
      await connectionsEnded;
      for (const each of dependencies) each.close();
      await metricsServer?.close();
    });
    // Fastify passes `reusePort` on; its types lack it.
    await app.listen({ ...address, reusePort, listenTextResolver } as typeof address);
    for (const each of dependencies) each.start();
    const { address: bound, port } = app.server.address() as AddressInfo;
    return {
      url: `${scheme}//${localHost(bound)}:${port}`,
      metricsUrl: metricsServer?.url,
      drainMs,
      async stop() {
        stopping.abort();
        if (reusePort) connectionsEnded = stopListening(app);
        // Before the port closes, load balancers must see that the process is not ready, and keep-alive connections must close.
        await sleep(drainMs);
        await app.close();
      },
    };
  } catch (error) {
    stopping.abort();
    await app.close();
    throw error;
  }
}

/**
 * Leaves the port to the other processes that listen on it (REUSE_PORT). Established connections stay open, even without a request so far:
 * `close` of an HTTP server would end those.
 *
 * @returns resolves when all established connections have ended
 */
const stopListening = ({ server }: FastifyInstance): Promise<void> =>
  new Promise((resolve) => void Server.prototype.close.call(server, () => resolve()));
