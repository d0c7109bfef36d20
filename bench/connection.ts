import { connect, type Socket } from 'node:net';

/** The maximum size of a response that is read in one piece; a larger one is concatenated, which is slower; bytes. */
const READ_BUFFER_BYTES = 64 * 1024;

/** A keep-alive HTTP/1.1 connection with one request at a time. */
export interface Connection {
  /** Sends a request, head and body. The response is passed to `onAnswer`. */
  send(request: Buffer | string): void;
  close(): void;
}

export interface Answers {
  /** @param body the bytes of the response, valid until this returns */
  onAnswer(status: number, body: Buffer): void;
  /** The connection ended, or a response was invalid; a pending request gets no response. */
  onEnd(reason: string): void;
}

/** Connects to an address; rejects when the connection is refused. */
export function openConnection(url: URL, answers: Answers): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let partial: Buffer | undefined;
    const receive = (received: Buffer) => {
      const data = partial ? Buffer.concat([partial, received]) : received;
      const answer = parseAnswer(data);
      if (!answer) {
        partial = Buffer.from(data);
        return;
      }
      partial = undefined;
      answers.onAnswer(answer.status, answer.body);
    };
    const socket: Socket = connect({
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
    let reason = 'the connection was closed';
    socket.once('connect', () =>
      resolve({
        send: (request) => void socket.write(request, 'latin1'),
        close: () => socket.destroy(),
      }),
    );
    socket.on('error', (error) => {
      reason = error.message;
      reject(error);
    });
    socket.once('end', () => socket.destroy());
    socket.once('close', () => answers.onEnd(reason));
  });
}

/**
 * Parses the status and body of a response; undefined: it is incomplete.
 *
 * @throws Error when it has no Content-Length, or further bytes follow
 */
function parseAnswer(data: Buffer): { status: number; body: Buffer } | undefined {
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
