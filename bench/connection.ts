import { once } from 'node:events';
import { connect } from 'node:net';

/** A larger response is read in pieces and concatenated, which is slower. */
const READ_BUFFER_BYTES = 64 * 1024;

export interface Reply {
  readonly status: number;
  /** Valid until the next request is sent. */
  readonly body: Buffer;
}

/** A keep-alive HTTP/1.1 connection with one request at a time. */
export interface Connection {
  /** Sends a request, head and body. Rejects when the connection ends or has ended, or the response is invalid. */
  send(request: Buffer): Promise<Reply>;
  close(reason: string): void;
}

/** Connects to an address; rejects when the connection is refused. */
export async function openConnection(url: URL): Promise<Connection> {
  let pending: PromiseWithResolvers<Reply> | undefined;
  let ended: Error | undefined;
  let partial: Buffer | undefined;
  const receive = (received: Buffer) => {
    const data = partial ? Buffer.concat([partial, received]) : received;
    const reply = parseReply(data);
    partial = reply ? undefined : Buffer.from(data);
    if (reply) pending?.resolve(reply);
  };
  const socket = connect({
    host: url.hostname,
    port: Number(url.port),
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafeSlow(READ_BUFFER_BYTES),
      callback(length, buffer) {
        try {
          receive((buffer as Buffer).subarray(0, length));
        } catch (error) {
          socket.destroy(error as Error);
        }
        return true;
      },
    },
  });
  await once(socket, 'connect');
  socket.on('error', (error) => {
    ended = error;
  });
  socket.once('end', () => socket.destroy());
  socket.once('close', () => {
    ended ??= new Error('the connection was closed');
    pending?.reject(ended);
  });
  return {
    send(request) {
      if (ended) return Promise.reject(ended);
      pending = Promise.withResolvers();
      socket.write(request);
      return pending.promise;
    },
    close: (reason) => socket.destroy(new Error(reason)),
  };
}

/**
 * Parses the status and body of a response; returns undefined if it is incomplete.
 *
 * @throws Error when it has no Content-Length, or further bytes follow
 */
function parseReply(data: Buffer): Reply | undefined {
  const headEnd = data.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = data.toString('latin1', 0, headEnd);
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error('a response without Content-Length');
  const start = headEnd + 4;
  const end = start + Number(length);
  if (data.length < end) return undefined;
  if (data.length > end) throw new Error('more bytes than the response has');
  // HTTP/1.1 201 Created
  return { status: Number(head.slice(9, 12)), body: data.subarray(start, end) };
}
