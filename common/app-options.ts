import { LogController } from 'fastify';
import type { Logger } from 'pino';

/** The options of Fastify that gateway and core share. */
export const appOptions = (log: Logger) => ({
  loggerInstance: log,
  // A child logger per request would cost as much as the line that it writes.
  childLoggerFactory: <Parent>(parent: Parent): Parent => parent,
  // Both write lines of their own.
  logController: new LogController({ disableRequestLogging: true }),
  exposeHeadRoutes: false,
  // Requests in flight when a process stops are served, not refused.
  return503OnClosing: false,
});
