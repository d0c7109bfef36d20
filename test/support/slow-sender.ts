import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll } from 'vitest';
import { takeAnswer } from './raw-http.ts';

/** Long enough for a server to answer the first piece and close its end before the others arrive; milliseconds. */
const PAUSE_MS = 15;
const PIECES = 20;

function isAnsweredAndKept(received: Buffer): boolean {
  const whole = takeAnswer(received, false);
  return whole !== undefined && whole.answer.headers.connection !== 'close';
}

/**
 * Returns a function that collects sockets, which are destroyed after the last test of the file. With concurrent tests,
 * `onTestFinished` does not know which test calls it.
 */
export function destroyAfterAll(): (socket: Socket) => void {
  const sockets: Socket[] = [];
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
  });
  return (socket) => void sockets.push(socket);
}

/**
 * Sends a text and then many bytes piece by piece, and reads only after that. Returns the bytes received until the server
 * has answered or ends its side.
 *
 * @param socket a connection that may stay half open
 * @param isAnswered whether the received bytes are a complete answer after which the server keeps its side open
 * @throws Error when the connection breaks, for example by a reset
 */
export async function sendSlowly(
  socket: Socket,
  text: string | Buffer,
  rest: Buffer,
  isAnswered = isAnsweredAndKept,
): Promise<Buffer> {
  socket.pause();
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => {});
  socket.on('error', broken.reject).on('close', () => broken.reject(new Error('closed before it had ended')));
  const send = (bytes: string | Buffer) =>
    Promise.race([broken.promise, new Promise<void>((resolve) => socket.write(bytes, () => resolve()))]);
  await send(text);
  const length = Math.ceil(rest.length / PIECES);
  for (let at = 0; at < rest.length; at += length) {
    await sleep(PAUSE_MS);
    await send(rest.subarray(at, at + length));
  }
  let received: Buffer = Buffer.alloc(0);
  const ended = new Promise<void>((resolve) => {
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      if (isAnswered(received)) resolve();
    });
    socket.on('end', resolve);
  });
  socket.resume();
  await Promise.race([broken.promise, ended]);
  socket.end();
  return received;
}
