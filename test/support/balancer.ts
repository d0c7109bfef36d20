import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { ChannelCredentials } from '@grpc/grpc-js';
import { grpcCaller } from './grpc.ts';

/** Who does not say in this time that it serves does not serve; milliseconds. */
const ANSWERS_WITHIN_MS = 2000;

/** Who does not so many times in a row is given no new connections: what passes at once takes nobody away. */
const MAX_UNREADY_PROBES = 2;

/** Passes connections on to those servers in turn that say they are ready; connections that stand stay where they are. */
export interface Balancer {
  readonly url: string;
  /** Whether a server is given new connections. */
  isUsed(serverUrl: string): boolean;
  /** How many connections it has passed on. */
  opened(): number;
  stop(): void;
}

/** Whether a gateway says that it is ready. */
export async function servesGateway(url: string): Promise<boolean> {
  return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) })).ok;
}

/**
 * Whether a core says that it serves.
 *
 * @param channel unless told, without TLS
 */
export async function servesCore(url: string, channel?: ChannelCredentials): Promise<boolean> {
  const caller = grpcCaller(new URL(url).host, channel);
  try {
    const deadline = Date.now() + ANSWERS_WITHIN_MS;
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
 * Starts one, which whoever starts it must stop.
 *
 * @param probeMs how often each server is asked whether it is ready; milliseconds
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
  // Who says that no more will come still reads.
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
