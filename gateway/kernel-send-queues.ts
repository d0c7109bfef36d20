import { readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

/**
 * Returns the number of unacknowledged bytes in the kernel's send queue of each TCP socket of this network namespace,
 * by socket key. Empty on systems other than Linux.
 */
export async function kernelSendQueues(): Promise<ReadonlyMap<string, number>> {
  const bytesByKey = new Map<string, number>();
  for (const table of ['tcp', 'tcp6']) {
    const lines = (await readFile(`/proc/self/net/${table}`, 'latin1').catch(() => '')).split('\n').slice(1);
    for (const line of lines) {
      // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
      const [, , , , queues = '', , , , , inode] = line.trim().split(/\s+/);
      const bytes = Number.parseInt(queues, 16);
      if (bytes > 0) bytesByKey.set(`socket:[${inode}]`, bytes);
    }
  }
  return bytesByKey;
}

/** Returns a socket's key in `kernelSendQueues`; undefined on systems other than Linux, and for a closed socket. */
export function socketKey(socket: Socket): string | undefined {
  const { _handle: handle } = socket as unknown as { _handle: { fd: number } | null };
  try {
    return handle ? readlinkSync(`/proc/self/fd/${handle.fd}`) : undefined;
  } catch {
    return undefined;
  }
}
