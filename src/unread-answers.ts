import type { Writable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { type Connection, type Connections, streamOf } from './connections.ts';
import type { TellEnded } from './ended-log.ts';

/** How often it is looked whether callers take what they are sent; milliseconds. */
const LOOK_MS = 1000;

/**
 * How many looks may find that nothing was taken. They are counted, not timed: a process that stood still finds one look
 * over, and not that all others have not read.
 */
export const MOST_LOOKS = 30;

/** From how many on a caller counts as one who does not read, and not as one who reads slowly. */
const NOT_SLOW_LOOKS = 10;

/** What is written goes in pieces no larger than that, so that it is seen whether some of it is taken; bytes. */
const PIECE_BYTES = 16 * 1024;

/** How much may be unsent in all; bytes. More than can come at once for callers who read. */
export const MOST_UNSENT_BYTES = 64 * 1024 * 1024;

/** How much is written before it is looked how much of that is unsent; bytes. */
const LOOK_AFTER_BYTES = 4 * 1024 * 1024;

/** An answer that is not sent to its end. */
interface Answer {
  readonly to: Writable;
  readonly connection: Connection | undefined;
  /** How much of it was unsent when it was last looked at; bytes. */
  unsent: number;
  /** How many looks have found that nothing was taken. */
  looks: number;
}

/**
 * Ends answers of which their callers take nothing for a time; and, as soon as all together hold too much, connections:
 * those first that have taken nothing for longest, or else hold most. Who reads slowly is neither.
 */
export function endUnreadAnswers(app: FastifyInstance, connections: Connections, tell: TellEnded): void {
  const answers = new Set<Answer>();
  let written = 0;

  app.addHook('onRequest', async (request, reply) => {
    const { raw } = reply;
    const connection = connections.of(request, reply);
    const answer: Answer = { to: streamOf(reply) ?? raw, connection, unsent: 0, looks: 0 };
    answers.add(answer);
    raw.once('close', () => answers.delete(answer));
    const write = raw.write.bind(raw) as (...args: unknown[]) => boolean;
    raw.write = (chunk: Uint8Array, ...rest: unknown[]) => {
      let at = 0;
      for (; at + PIECE_BYTES < chunk.length; at += PIECE_BYTES) write(chunk.subarray(at, at + PIECE_BYTES));
      const isTaken = write(chunk.subarray(at), ...rest);
      written += chunk.length;
      if (written >= LOOK_AFTER_BYTES) endSomeIfTooMuch();
      return isTaken;
    };
  });

  const looking = setInterval(() => {
    for (const answer of answers) {
      const { writableLength } = answer.to;
      answer.looks = writableLength > 0 && writableLength >= answer.unsent ? answer.looks + 1 : 0;
      answer.unsent = writableLength;
      if (answer.looks <= MOST_LOOKS) continue;
      tell('an answer that was not read');
      answer.to.destroy();
    }
    endSomeIfTooMuch();
  }, LOOK_MS).unref();
  app.addHook('onClose', async () => clearInterval(looking));

  function endSomeIfTooMuch(): void {
    written = 0;
    let unsent = 0;
    for (const { to } of answers) unsent += to.writableLength;
    if (unsent <= MOST_UNSENT_BYTES) return;
    const held = new Map<Connection, { bytes: number; looks: number }>();
    for (const { to, connection, looks } of answers) {
      if (!connection || to.writableLength === 0) continue;
      const before = held.get(connection) ?? { bytes: 0, looks: 0 };
      const deafLooks = looks < NOT_SLOW_LOOKS ? 0 : looks;
      held.set(connection, { bytes: before.bytes + to.writableLength, looks: Math.max(before.looks, deafLooks) });
    }
    for (const [connection, { bytes }] of [...held].sort(([, a], [, b]) => b.looks - a.looks || b.bytes - a.bytes)) {
      tell('a connection, too much was not read');
      // Not the answers alone: what was handed to the kernel's side is held for as long as the connection.
      connection.end(0);
      for (const answer of answers) if (answer.connection === connection) answers.delete(answer);
      unsent -= bytes;
      // Not only as much as it takes: the next would come with the next write.
      if (unsent <= MOST_UNSENT_BYTES / 2) return;
    }
  }
}
