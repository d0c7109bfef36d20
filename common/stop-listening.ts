import { Server } from 'node:net';

/**
 * Leaves a port to the other processes that listen on it (REUSE_PORT). Established connections stay open, including those
 * without a request so far: `close` of an HTTP server would end them.
 *
 * @returns resolves when all established connections have ended
 */
export const stopListening = (server: object): Promise<void> =>
  new Promise((resolve) => Server.prototype.close.call(server as Server, () => resolve()));
