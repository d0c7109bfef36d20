import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { asksForHealth } from '../rpc/caller-authentication.ts';
import { type CallerConnection, type Connections, streamOf } from './connections.ts';
import type { ReportEnded } from './ended-stream-log.ts';

/** How often it is looked whether callers take what they are sent; milliseconds. */
const LOOK_MS = 1000;

/**
 * How many looks may find that nothing was taken. They are counted, not timed: a process that stood still finds one look
 * over, and not that all others have not read.
 */
export const MAX_STALLED_CHECKS = 30;

/** From how many on a caller counts as one who does not read, and not as one who reads slowly. */
const NOT_SLOW_LOOKS = 10;

/** What is written goes in pieces no larger than that, so that it is seen whether some of it is taken; bytes. */
const PIECE_BYTES = 16 * 1024;

/** How much may be unsent in all; bytes. More than can come at once for callers who read. */
export const MAX_UNSENT_BYTES = 64 * 1024 * 1024;

/** From how much on whoever has not read what they asked for waits before they are given more; bytes. */
const MUCH_UNSENT_BYTES = MAX_UNSENT_BYTES / 4;

/** How many of those who wait are let in after a look: all at once, they would be answered before it is seen how much that is. */
const MAX_ADMITTED = 64;

/** How much is written before it is looked how much of that is unsent; bytes. */
const LOOK_AFTER_BYTES = 2 * 1024 * 1024;

/** An answer that is not sent to its end. */
interface Answer {
  readonly to: Writable;
  readonly connection: CallerConnection | undefined;
  /** How much of it was written so far, and had been taken when it was last looked at; bytes. */
  written: number;
  taken: number;
  /** How many looks have found that nothing was taken. */
  looks: number;
}

/** A connection on which something is unsent. */
interface Holder {
  readonly connection: CallerConnection;
  bytes: number;
  looks: number;
}

/**
 * Ends answers of which their callers take nothing for a time; and, as soon as all together hold too much, connections:
 * those first that have taken nothing for longest, or else hold most. Who reads slowly is neither. Before it comes to that,
 * whoever has unread answers is given no more.
 */
export function endUnreadResponses(app: FastifyInstance, connections: Connections, tell: ReportEnded): void {
  const unread = new UnreadResponses(connections, tell);
  app.addHook('onRequest', async (request, reply) => {
    const { raw } = reply;
    const connection = connections.of(request);
    if (!asksForHealth(request.url) && !(await unread.turnCame(connection, raw))) return reply.hijack();
    unread.watch(raw, streamOf(reply) ?? raw, connection);
  });
  const looking = setInterval(() => unread.look(), LOOK_MS).unref();
  app.addHook('onClose', async () => clearInterval(looking));
}

class UnreadResponses {
  readonly #connections: Connections;
  readonly #tell: ReportEnded;
  readonly #answers = new Set<Answer>();
  /** How much was unsent when it was last looked at, and how much was written since. */
  #unsent = 0;
  #written = 0;
  #nextLook = Promise.withResolvers<void>();
  /** How many of those who waited were let in since the last look. */
  #letIn = 0;

  constructor(connections: Connections, tell: ReportEnded) {
    this.#connections = connections;
    this.#tell = tell;
  }

  /** Resolves to true when a caller may be given more, to false when they have gone while they waited. */
  async turnCame(connection: CallerConnection | undefined, answer: Writable): Promise<boolean> {
    for (let waited = false; ; waited = true) {
      if (!this.#isToWait(connection) && (!waited || this.#letIn++ < MAX_ADMITTED)) return true;
      await this.#nextLook.promise;
      if (answer.destroyed || connection?.isEnding) return false;
    }
  }

  /**
   * Watches an answer from its beginning to its end.
   *
   * @param raw where it is written
   * @param to where it stands until it is sent
   */
  watch(raw: ServerResponse, to: Writable, connection: CallerConnection | undefined): void {
    const answer: Answer = { to, connection, written: 0, taken: 0, looks: 0 };
    this.#answers.add(answer);
    raw.once('close', () => this.#answers.delete(answer));
    const write = raw.write.bind(raw) as (...args: unknown[]) => boolean;
    raw.write = (chunk: Uint8Array, ...rest: unknown[]) => {
      let at = 0;
      for (; at + PIECE_BYTES < chunk.length; at += PIECE_BYTES) write(chunk.subarray(at, at + PIECE_BYTES));
      const isTaken = write(chunk.subarray(at), ...rest);
      this.#written += chunk.length;
      answer.written += chunk.length;
      if (this.#written >= LOOK_AFTER_BYTES) this.#endSomeIfTooMuch();
      return isTaken;
    };
  }

  /** Looks whether callers take what they are sent. */
  look(): void {
    for (const answer of this.#answers) {
      const { writableLength } = answer.to;
      // Not whether less is unsent than before: what goes on and on has the next piece written as soon as one is taken.
      const taken = answer.written - writableLength;
      answer.looks = writableLength > 0 && taken <= answer.taken ? answer.looks + 1 : 0;
      answer.taken = taken;
      if (answer.looks <= MAX_STALLED_CHECKS) continue;
      this.#tell('an answer that was not read');
      answer.to.destroy();
    }
    this.#endSomeIfTooMuch();
    this.#letIn = 0;
    this.#nextLook.resolve();
    this.#nextLook = Promise.withResolvers();
  }

  /** Whether more had better not be begun for a caller: much is unsent in all, and some of it is theirs. */
  #isToWait(connection: CallerConnection | undefined): boolean {
    return (
      connection !== undefined &&
      this.#unsent + this.#written > MUCH_UNSENT_BYTES &&
      (connection.queuedBytes > 0 ||
        this.#answers.values().some((answer) => answer.connection === connection && answer.to.writableLength > 0))
    );
  }

  #endSomeIfTooMuch(): void {
    this.#written = 0;
    const held = this.#holders();
    this.#unsent = held.reduce((sum, { bytes }) => sum + bytes, 0);
    if (this.#unsent <= MAX_UNSENT_BYTES) return;
    for (const { connection, bytes } of held.sort((a, b) => b.looks - a.looks || b.bytes - a.bytes)) {
      this.#tell('a connection, too much was not read');
      // Not the answers alone: what was handed to the kernel's side is held for as long as the connection.
      connection.end(0);
      for (const answer of this.#answers) if (answer.connection === connection) this.#answers.delete(answer);
      this.#unsent -= bytes;
      // Not only as much as it takes: the next would come with the next write.
      if (this.#unsent <= MAX_UNSENT_BYTES / 2) return;
    }
  }

  /** The connections on which something is unsent, how much that is, and how many looks have found it so. */
  #holders(): Holder[] {
    const held = new Map<CallerConnection, Holder>();
    for (const connection of this.#connections) {
      if (connection.queuedBytes === 0 || connection.isEnding) continue;
      held.set(connection, { connection, bytes: 0, looks: 0 });
    }
    for (const { to, connection, looks } of this.#answers) {
      if (!connection || to.writableLength === 0) continue;
      const holder = held.get(connection) ?? { connection, bytes: 0, looks: 0 };
      holder.bytes += to.writableLength;
      if (looks >= NOT_SLOW_LOOKS) holder.looks = Math.max(holder.looks, looks);
      held.set(connection, holder);
    }
    // The kernel's side has some of what belongs to answers, and all of those that were written to their end.
    for (const holder of held.values()) holder.bytes = Math.max(holder.bytes, holder.connection.queuedBytes);
    return [...held.values()];
  }
}
