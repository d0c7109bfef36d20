import type { Socket } from 'node:net';
import { REQUEST_ARRIVAL_MS } from './deadlines.ts';

/** How long a connection is read after its last answer, and how long its peer may be silent; milliseconds. */
export const MAX_LINGER_MS = REQUEST_ARRIVAL_MS;
export const MAX_LINGER_SILENCE_MS = 5000;

/** The maximum number of bytes to discard from a connection after its last answer. */
export const MAX_DISCARDED_BYTES = 8 * 1024 * 1024;

/**
 * Closes connections in stages (RFC 9112, section 9.6): answer, half-close, discard what still arrives, close. The kernel resets a
 * connection that is closed with unread bytes, so a peer that still sends would lose the answer.
 */
export class Lingering {
  /** Oldest first. */
  readonly #sockets = new Set<Socket>();
  readonly #max: number;

  /** @param max the maximum number of lingering connections; one more closes the oldest */
  constructor(max: number) {
    this.#max = max;
  }

  /** Makes a socket close in stages. Node's server calls `destroySoon` after the last answer. */
  watch(socket: Socket): void {
    socket.destroySoon = () => {
      socket.destroySoon = () => {};
      let left = MAX_DISCARDED_BYTES;
      // Removes the parser, which would take further bytes for requests.
      for (const event of ['data', 'end']) socket.removeAllListeners(event);
      socket.on('data', ({ length }) => {
        left -= length;
        if (left < 0) socket.destroy();
      });
      socket.resume();
      const end = () =>
        socket.end(() => {
          // Only now, so that a peer has as long for this answer as for any other.
          socket.setTimeout(MAX_LINGER_SILENCE_MS, () => socket.destroy());
          this.hold(socket);
        });
      // With TLS, OpenSSL fails a connection that is closed before it has decoded everything read.
      if ('encrypted' in socket) setImmediate(end);
      else end();
    };
  }

  /** Keeps a half-closed socket for a limited time, until its peer closes it. */
  hold(socket: Socket): void {
    if (socket.destroyed) return;
    const timer = setTimeout(() => socket.destroy(), MAX_LINGER_MS).unref();
    socket.once('close', () => {
      clearTimeout(timer);
      this.#sockets.delete(socket);
    });
    const [oldest] = this.#sockets.add(socket);
    if (this.#sockets.size > this.#max) oldest?.destroy();
  }
}
