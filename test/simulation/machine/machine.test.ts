import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { Machine, SimulatedNode } from './machine.ts';

const aMachine = (seed = 1) => {
  const machine = new Machine(seed).turnOn();
  return { machine, node: new SimulatedNode('node', machine) };
};

/** Lets time pass on a machine. */
const pass = (machine: Machine, ms: number) =>
  machine.runUntil(new Promise<void>((resolve) => machine.schedule(ms, resolve, machine.outside)));

test('a killed node runs nothing more and releases its resources', async () => {
  const { machine, node } = aMachine();
  const happened: string[] = [];
  node.resources.add({ release: () => happened.push('released') });
  machine.schedule(2, () => happened.push('too late'), node);
  machine.schedule(1, () => node.kill(), machine.outside);
  await pass(machine, 5);
  expect(happened).toEqual(['released']);
});

test('events of a computing node wait in order while those of other nodes happen', async () => {
  const { machine, node } = aMachine();
  machine.busyShare = 1;
  const busy = new SimulatedNode('busy', machine, true);
  const happened: string[] = [];
  const note = (name: string) => () => happened.push(name);
  for (const name of ['first', 'second', 'third']) machine.schedule(1, note(name), busy);
  machine.schedule(1.5, note('other'), node);
  await pass(machine, 1.7);
  expect(happened).toEqual(['first', 'other']);
  expect(busy.busyUntilMs).toBeGreaterThanOrEqual(2);
  await pass(machine, 600);
  expect(happened).toEqual(['first', 'other', 'second', 'third']);
});

test('the events of a suspended node happen when it continues', async () => {
  const { machine, node } = aMachine();
  const happened: number[] = [];
  machine.schedule(2, () => happened.push(machine.nowMs), node);
  machine.schedule(1, () => node.pause(), machine.outside);
  machine.schedule(7, () => node.resume(), machine.outside);
  await pass(machine, 9);
  expect(happened).toEqual([7]);
});

test('waiting for a promise that nothing can settle is an error, not a hang', async () => {
  const { machine } = aMachine();
  await expect(machine.runUntil(new Promise(() => {}))).rejects.toThrow('nothing is scheduled that could settle');
});

test.each([
  [
    'work in the thread pool',
    /^PBKDF2REQUEST .*eval/,
    "(await import('node:crypto')).pbkdf2('', '', 1, 1, 'sha256', () => {})",
  ],
  ['a real timer', /^Timeout .*eval/, 'await new Promise((resolve) => setTimeout(resolve, 1))'],
  ['a child process', /^PROCESSWRAP .*eval/, "(await import('node:child_process')).spawn('true')"],
  ['a real socket', /^TCPSERVERWRAP .*eval/, "(await import('node:net')).createServer().listen(0).unref()"],
])('an escape to %s is found with its position in the code', async (_, expected, code) => {
  const file = join(import.meta.dirname, 'escapes.ts');
  const script = `const { escapes, watchEscapes } = await import(${JSON.stringify(file)}); watchEscapes(); ${code};
    console.log(JSON.stringify([...escapes.keys()])); process.exit(0);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]);
  expect(JSON.parse(stdout)[0]).toMatch(expected);
});
