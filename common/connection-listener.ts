import { Server } from 'node:net';

/** The listening side of a server that shares its port with other processes. */
export interface ConnectionListener {
  /** Stops accepting connections. Established ones stay open, including those without a request so far. */
  stopAccepting(): void;
  /** Resolves when all established connections have ended; immediately unless `stopAccepting` was called. */
  closed(): Promise<void>;
}

export function connectionListener(server: object): ConnectionListener {
  let closed = Promise.resolve();
  return {
    stopAccepting() {
      // `close` of an HTTP server would also end connections that have had no request yet.
      closed = new Promise((resolve) => Server.prototype.close.call(server as Server, () => resolve()));
    },
    closed: () => closed,
  };
}
