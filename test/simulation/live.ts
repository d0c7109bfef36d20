import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Life } from './life.ts';
import { escapes, watchEscapes } from './machine/escapes.ts';
import { Machine } from './machine/machine.ts';
import { Network, useNetwork } from './machine/network.ts';
import { replaceNode } from './machine/replace-node.ts';

/*
 * Runs one life in this process: `live.ts SEED PLAN LIFE` reads the plan from a file, and writes the result to another.
 * `--database mongodb` uses a replica set, `--trace FILE` writes every event.
 */

/** The number of events shown with a broken promise. */
const SHOWN_EVENTS = 40;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { database: { type: 'string' }, trace: { type: 'string' } },
});
const [seed = '', planFile = '', lifeFile = ''] = positionals;
const plan = JSON.parse(readFileSync(planFile, 'utf8'));

// Node opens these streams on first use.
void [process.stdout, process.stdin];
replaceNode();
const machine = new Machine(Number(seed), values.trace ? Number.POSITIVE_INFINITY : SHOWN_EVENTS).turnOn();
machine.busyShare = plan.busyShare ?? 0;
const network = new Network();
useNetwork(network);
const { runPlan } = await import('./run-plan.ts');
const { MORE_SCENARIOS } = await import('./replica-set-scenarios.ts');
const startWorld =
  values.database === 'mongodb'
    ? (await import('./simulated-mongo-world.ts')).startSimulatedMongoWorld
    : (await import('./simulated-world.ts')).startSimulatedWorld;
watchEscapes();
const faults: string[] = [];
process.on('uncaughtException', (error) => faults.push(`uncaught error: ${error.stack}`));

const result = await machine
  .runUntil(
    machine.outside.run(() =>
      runPlan(plan, seed, (settings) => startWorld(machine, settings, network), MORE_SCENARIOS),
    ),
  )
  .catch((error) => ({ violations: [`the life cannot end: ${error.stack}`], unknown: [], excused: 0, trace: '' }));
const { hash, lines } = machine.trace();
if (values.trace) writeFileSync(values.trace, `${lines.join('\n')}\n`);
const { user, system } = process.cpuUsage();
const life: Life = {
  violations: [
    ...result.violations,
    ...faults,
    ...[...escapes].map(([place, times]) => `${times} times, code depended on more than the seed: ${place}`),
  ],
  unknown: result.unknown,
  excused: result.excused,
  story: result.trace,
  events: machine.events,
  virtualMs: machine.nowMs,
  processorMs: (user + system) / 1000,
  trace: hash,
  lastEvents: lines.slice(-SHOWN_EVENTS),
};
writeFileSync(lifeFile, JSON.stringify(life));
process.exit(0);
