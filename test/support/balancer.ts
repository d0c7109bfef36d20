import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { ChannelCredentials } from '@grpc/grpc-js';
import { grpcCaller } from './grpc.ts';

/** The timeout of a readiness probe; milliseconds. */
const PROBE_TIMEOUT_MS = 2000;

/** A server that fails this many probes in a row gets no new connections. */
const MAX_UNREADY_PROBES = 2;

/** Distributes new connections round-robin over the servers that are ready. Open connections stay where they are. */
export interface Balancer {
  readonly url: string;
  /** Whether a server gets new connections. */
  isUsed(serverUrl: string): boolean;
  /** The number of connections accepted so far. */
  opened(): number;
  stop(): void;
}

/** Reports whether a gateway is ready. */
export async function isGatewayReady(url: string): Promise<boolean> {
  return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })).ok;
}

/**
 * Reports whether a core is serving.
 *
 * @param channel without TLS by default
 */
export async function isCoreServing(url: string, channel?: ChannelCredentials): Promise<boolean> {
  const caller = grpcCaller(new URL(url).host, channel);
  try {
    const deadline = Date.now() + PROBE_TIMEOUT_MS;
    const { status } = await caller.call<{ status: string }>(
      'grpc.health.v1.Health/Check',
      {},
      { authorization: undefined, deadline },
    );
    return status === 'SERVING';
  } finally {
    caller.close();
  }
}

/**
 * Starts a balancer. The caller must stop it.
 *
 * @param probeMs the time between two probes of a server; milliseconds
 */
export async function startBalancer(
  urls: readonly string[],
  isReady: (url: string) => Promise<boolean>,
  probeMs: number,
): Promise<Balancer> {
  const ready = new Set<string>();
  const timers = new Set<NodeJS.Timeout>();
  let isStopped = false;
  const unreadyProbes = new Map<string, number>();
  const probe = async (url: string): Promise<void> => {
    const isUnready = !(await isReady(url).catch(() => false));
    const inARow = isUnready ? (unreadyProbes.get(url) ?? 0) + 1 : 0;
    unreadyProbes.set(url, inARow);
    if (!isUnready) ready.add(url);
    else if (inARow >= MAX_UNREADY_PROBES) ready.delete(url);
    if (isStopped) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      probe(url);
    }, probeMs);
    timers.add(timer);
  };
  let turn = 0;
  // A peer that has ended its sending side still reads.
  const open = { noDelay: true, allowHalfOpen: true } as const;
  const listener = createServer(open, (client) => {
    const candidates = [...ready];
    turn += 1;
    const url = candidates[turn % candidates.length];
    if (url === undefined) client.destroy();
    else joinConnections(client, connect({ ...open, port: Number(new URL(url).port), host: '127.0.0.1' }));
  }).listen(0, '127.0.0.1');
  await Promise.all([once(listener, 'listening'), ...urls.map(probe)]);
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    isUsed: (url) => ready.has(url),
    opened: () => turn,
    stop() {
      isStopped = true;
      for (const timer of timers) clearTimeout(timer);
      listener.close();
    },
  };
}

function joinConnections(client: Socket, server: Socket): void {
  client.pipe(server).pipe(client);
  client.on('error', () => server.destroy()).on('close', () => server.destroy());
  server.on('error', () => client.destroy()).on('close', () => client.destroy());
}
