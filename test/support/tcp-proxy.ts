import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Which replies, or requests, get lost. */
export interface Loss {
  /** Whether a client's bytes are a request that counts; its reply may get lost. */
  readonly of: (request: Buffer) => boolean;
  /** The first one that gets lost; the next is 1. */
  readonly from?: number;
  /** How many get lost, one after the other. */
  readonly count?: number;
  /** How much of the reply still comes through; bytes. Unless told, nothing; all of it when the request is what breaks. */
  readonly replyBytes?: number;
  /** How much of the request still comes through before the connection breaks; bytes. Unless told, all of it. */
  readonly requestBytes?: number;
  /** What becomes of the connection: it breaks, or nothing comes any more. */
  readonly by?: 'cut' | 'silence';
  /** How long after the reply it breaks, nothing coming meanwhile; milliseconds. Unless told, at once. */
  readonly afterMs?: number;
}

/** A way to a server on which faults happen when a test wants them. */
export interface TcpProxy {
  readonly port: number;
  /** How many connections lead through it just now. */
  connections(): number;
  /** How many there have been. */
  opened(): number;
  /** From now on, requests arrive and are carried out, but some of their replies do not come back, or not whole. */
  loseReplies(loss: Loss): void;
  /**
   * The next request that counts goes no farther, and has this reply.
   *
   * @param of as in `Loss`
   */
  replyTo(of: (request: Buffer) => boolean, replyOf: (request: Buffer) => Buffer): void;
  /** How many replies got lost since loseReplies. */
  lost(): number;
  /** From now on this share of the replies, 0 to 1, is the last that comes over its connection: just after, that breaks. */
  breakAfterReplies(share: number): void;
  /** Connections stand and new ones succeed, but nothing comes through. */
  silence(): void;
  /** Connections break, and new ones are closed at once. */
  refuse(): void;
  /** Ends every fault. What a silence has held up arrives now, late. */
  heal(): void;
  stop(): Promise<void>;
}

/** Listens on a free port of 127.0.0.1 and passes on what comes. Whoever starts it must stop it. */
export async function startProxy(targetHost: string, targetPort: number): Promise<TcpProxy> {
  let mode: 'passing' | 'silent' | 'refusing' = 'passing';
  let loss: Required<Loss> | undefined;
  let ownReply: { of: (request: Buffer) => boolean; replyOf: (request: Buffer) => Buffer } | undefined;
  let seen = 0;
  let lost = 0;
  let lastReplies = 0;
  const pairs = new Map<Socket, Socket>();
  let opened = 0;

  const getsLost = (request: Buffer): boolean => {
    if (!loss?.of(request)) return false;
    seen += 1;
    return seen >= loss.from && seen < loss.from + loss.count;
  };
  const drop = (client: Socket) => {
    pairs.get(client)?.destroy();
    pairs.delete(client);
    client.destroy();
  };
  const hush = (client: Socket, server: Socket) => {
    client.pause();
    server.pause();
  };

  const listener = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    if (mode === 'refusing') {
      client.destroy();
      return;
    }
    const server = connect({ host: targetHost, port: targetPort, noDelay: true, allowHalfOpen: true });
    pairs.set(client, server);
    opened += 1;
    let loses: Required<Loss> | undefined;
    let isLosing = false;
    let replyBytesLeft = 0;
    const lose = ({ by, afterMs }: Required<Loss>) => {
      isLosing = true;
      lost += 1;
      server.pause();
      if (by === 'cut') setTimeout(() => drop(client), afterMs);
    };
    client.on('data', (request: Buffer) => {
      if (ownReply?.of(request)) {
        const { replyOf } = ownReply;
        ownReply = undefined;
        client.write(replyOf(request));
        return;
      }
      if (getsLost(request) && loss !== undefined) {
        loses = loss;
        replyBytesLeft = loss.replyBytes;
        if (loss.requestBytes < request.length) {
          server.write(request.subarray(0, loss.requestBytes));
          client.pause();
          lose(loss);
          return;
        }
      }
      server.write(request);
    });
    server.on('data', (reply: Buffer) => {
      const isWhole = loses === undefined || (loses !== loss && !isLosing) || reply.length <= replyBytesLeft;
      const arriving = isWhole ? reply : reply.subarray(0, replyBytesLeft);
      replyBytesLeft -= arriving.length;
      if (arriving.length > 0) client.write(arriving);
      if (Math.random() < lastReplies) setTimeout(() => drop(client), Math.random() * 2);
      // Only now: it is sure that the request was carried out.
      if (!isWhole && loses !== undefined) lose(loses);
    });
    // Who says that no more will come still reads.
    client.on('end', () => server.end());
    server.on('end', () => client.end());
    for (const socket of [client, server]) socket.on('error', () => {}).on('close', () => drop(client));
    if (mode === 'silent') hush(client, server);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');

  return {
    port: (listener.address() as AddressInfo).port,
    connections: () => pairs.size,
    opened: () => opened,
    loseReplies(wanted) {
      const unlessTold = {
        from: 1,
        count: 1,
        replyBytes: wanted.requestBytes === undefined ? 0 : Number.POSITIVE_INFINITY,
        requestBytes: Number.POSITIVE_INFINITY,
        by: 'cut',
        afterMs: 0,
      } as const;
      loss = { ...unlessTold, ...wanted };
      seen = 0;
      lost = 0;
    },
    replyTo(of, replyOf) {
      ownReply = { of, replyOf };
    },
    lost: () => lost,
    breakAfterReplies(share) {
      lastReplies = share;
    },
    silence() {
      mode = 'silent';
      for (const [client, server] of pairs) hush(client, server);
    },
    refuse() {
      mode = 'refusing';
      for (const client of pairs.keys()) drop(client);
    },
    heal() {
      mode = 'passing';
      loss = undefined;
      ownReply = undefined;
      lastReplies = 0;
      for (const [client, server] of pairs) {
        client.resume();
        server.resume();
      }
    },
    async stop() {
      for (const client of pairs.keys()) drop(client);
      listener.close();
      await once(listener, 'close');
    },
  };
}
