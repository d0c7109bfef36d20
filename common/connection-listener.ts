import { Server } from 'node:net';

/** A server on a port that others of its kind listen on, too. */
export interface ConnectionListener {
  /** Takes no more connections from the port. Those that stand go on, whether or not something was asked on them yet. */
  leave(): void;
  /** Resolves when none of those is left, if the port was left. */
  left(): Promise<void>;
}

export function connectionListener(server: object): ConnectionListener {
  let left = Promise.resolve();
  return {
    leave() {
      // A server of HTTP would also close connections of which it has not read anything, and whoever made them would not know why.
      left = new Promise((resolve) => Server.prototype.close.call(server as Server, () => resolve()));
    },
    left: () => left,
  };
}
