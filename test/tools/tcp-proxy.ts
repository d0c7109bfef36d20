import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The replies or requests that a proxy loses, and how. */
export interface Loss {
  /** Whether a client's bytes are a relevant request. Replies to other requests are never lost. */
  readonly of: (request: Buffer) => boolean;
  /** The first relevant request whose reply is lost; by default 1, the next one. */
  readonly from?: number;
  /** How many in a row are lost; by default 1. */
  readonly count?: number;
  /** How many bytes of the reply pass: by default none, or all of it if `requestBytes` is given. */
  readonly replyBytes?: number;
  /** How many bytes of the request pass before the connection breaks: by default all of it. */
  readonly requestBytes?: number;
  /** The fault of the connection: it breaks (the default), or stays open without traffic. */
  readonly by?: 'cut' | 'silence';
  /** The silence between the reply and the break; milliseconds. By default 0. */
  readonly afterMs?: number;
  /** Runs while the first lost reply is held back, before the connection breaks. */
  readonly meanwhile?: () => Promise<unknown>;
}

/** A TCP proxy that injects faults. */
export interface TcpProxy {
  readonly port: number;
  /** The number of connections so far. */
  opened(): number;
  /** From now on loses some replies, in whole or in part. The server executes their requests. */
  loseReplies(loss: Loss): void;
  /**
   * Replies to the next relevant request in place of the server, which does not get it.
   *
   * @param of as in `Loss`
   */
  replyTo(of: (request: Buffer) => boolean, makeReply: (request: Buffer) => Buffer): void;
  /** The number of replies lost since loseReplies. */
  lost(): number;
  /** Forwards nothing; connections stay open and new ones succeed. */
  silence(): void;
  /** Breaks connections and closes new ones immediately. */
  refuse(): void;
  /** Ends every fault. Bytes that `silence` has held back arrive now. */
  heal(): void;
  stop(): Promise<void>;
}

/** Listens on a free port of this machine and forwards bytes. The caller must stop it. */
export async function startProxy(targetHost: string, targetPort: number, host = '127.0.0.1'): Promise<TcpProxy> {
  let mode: 'passing' | 'silent' | 'refusing' = 'passing';
  let loss: Required<Loss> | undefined;
  let ownReply: { of: (request: Buffer) => boolean; makeReply: (request: Buffer) => Buffer } | undefined;
  let seen = 0;
  let lost = 0;
  const pairs = new Map<Socket, Socket>();
  let opened = 0;

  const isLost = (request: Buffer): boolean => {
    if (!loss?.of(request)) return false;
    seen += 1;
    return seen >= loss.from && seen < loss.from + loss.count;
  };
  const drop = (client: Socket) => {
    pairs.get(client)?.destroy();
    pairs.delete(client);
    client.destroy();
  };
  const pauseBoth = (client: Socket, server: Socket) => {
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
    const lose = ({ by, afterMs, meanwhile }: Required<Loss>) => {
      isLosing = true;
      lost += 1;
      server.pause();
      const held = lost === 1 ? meanwhile() : Promise.resolve();
      if (by === 'cut') held.finally(() => setTimeout(() => drop(client), afterMs)).catch(() => {});
    };
    client.on('data', (request: Buffer) => {
      if (ownReply?.of(request)) {
        const { makeReply } = ownReply;
        ownReply = undefined;
        client.write(makeReply(request));
        return;
      }
      if (isLost(request) && loss !== undefined) {
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
      // Only now has the server certainly executed the request.
      if (!isWhole && loses !== undefined) lose(loses);
    });
    // A peer that has ended its side still reads.
    client.on('end', () => server.end());
    server.on('end', () => client.end());
    for (const socket of [client, server]) socket.on('error', () => {}).on('close', () => drop(client));
    if (mode === 'silent') pauseBoth(client, server);
  });
  listener.listen(0, host);
  await once(listener, 'listening');

  return {
    port: (listener.address() as AddressInfo).port,
    opened: () => opened,
    loseReplies(wanted) {
      const defaults = {
        from: 1,
        count: 1,
        replyBytes: wanted.requestBytes === undefined ? 0 : Number.POSITIVE_INFINITY,
        requestBytes: Number.POSITIVE_INFINITY,
        by: 'cut',
        afterMs: 0,
        meanwhile: async () => {},
      } as const;
      loss = { ...defaults, ...wanted };
      seen = 0;
      lost = 0;
    },
    replyTo(of, makeReply) {
      ownReply = { of, makeReply };
    },
    lost: () => lost,
    silence() {
      mode = 'silent';
      for (const [client, server] of pairs) pauseBoth(client, server);
    },
    refuse() {
      mode = 'refusing';
      for (const client of pairs.keys()) drop(client);
    },
    heal() {
      mode = 'passing';
      loss = undefined;
      ownReply = undefined;
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
