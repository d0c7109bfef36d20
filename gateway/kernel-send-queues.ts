import { readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

/**
 * How many bytes the system keeps of what was sent on each TCP socket of this machine, because the other side has not taken
 * them; by the sockets' names. Only Linux tells: elsewhere it seems to keep nothing.
 */
export async function kernelSendQueues(): Promise<ReadonlyMap<string, number>> {
  const kept = new Map<string, number>();
  for (const table of ['tcp', 'tcp6']) {
    const lines = (await readFile(`/proc/self/net/${table}`, 'latin1').catch(() => '')).split('\n').slice(1);
    for (const line of lines) {
      // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
      const [, , , , queues = '', , , , , inode] = line.trim().split(/\s+/);
      const bytes = Number.parseInt(queues, 16);
      if (bytes > 0) kept.set(`socket:[${inode}]`, bytes);
    }
  }
  return kept;
}

/** What the system calls a socket; undefined where it does not tell, or when the socket is closed. */
export function socketKey(socket: Socket): string | undefined {
  const { _handle: handle } = socket as unknown as { _handle: { fd: number } | null };
  try {
    return handle ? readlinkSync(`/proc/self/fd/${handle.fd}`) : undefined;
  } catch {
    return undefined;
  }
}
