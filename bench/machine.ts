import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';

/** Describes the software and the machine, one line each. */
export function describeMachine(): string[] {
  const [load = 0] = loadavg();
  return [
    `Node ${process.versions.node}, SQLite ${process.versions.sqlite}, Fastify ${versionOf('fastify')}, ` +
      `Connect ${versionOf('@connectrpc/connect')}`,
    `${availableParallelism()} cores (${cpus()[0]?.model}), ${Math.round(totalmem() / 2 ** 30)} GB of memory; ` +
      `${load.toFixed(1)} processes running at the start`,
  ];
}

function versionOf(name: string): string {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../node_modules', name, 'package.json'), 'utf8')).version;
}
