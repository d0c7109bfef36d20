import { connect, type Socket } from 'node:net';

/** The longest answer that arrives in one piece; bytes. A longer one is put together, which is slower. */
const READ_BUFFER_BYTES = 64 * 1024;

/** A keep-alive HTTP/1.1 connection that carries one request at a time. */
export interface Connection {
  /** Sends a whole request, head and body, in one piece. Its answer comes to `onAnswer`. */
  send(request: Buffer | string): void;
  close(): void;
}

/** What becomes of the requests of a connection. */
export interface Answers {
  /** @param body the answer's bytes, only good until this returns */
  onAnswer(status: number, body: Buffer): void;
  /** The connection ended, or what came was not understood; its request, if there was one, has no answer. */
  onEnd(reason: string): void;
}

/** Connects to an address and resolves once requests can be sent. Rejects when nobody listens there. */
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
 * Reads what load needs to know of an answer: status, and where its body ends. Undefined until all of it is there.
 *
 * @throws Error when it has no Content-Length, or more follows than the answer
 */
function parseAnswer(data: Buffer): { status: number; body: Buffer } | undefined {
  const headEnd = data.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = data.toString('latin1', 0, headEnd);
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error('an answer without Content-Length');
  const start = headEnd + 4;
  const end = start + Number(length);
  if (data.length < end) return undefined;
  if (data.length > end) throw new Error('more bytes than the answer has');
  // HTTP/1.1 201 Created
  return { status: Number(head.slice(9, 12)), body: data.subarray(start, end) };
}
