import { EventEmitter } from 'node:events';
import { openSync } from 'node:fs';
import { type LoadHookContext, registerHooks, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { format } from 'node:util';
import { here, type Machine, SimulatedNode } from './machine/machine.ts';
import type { Settings } from './settings.ts';

/* The operator's commands. Each runs on its own node, with its own modules and `process`. */

/** The result of a command. */
export interface CommandEnd {
  /** The exit status, or the signal that ended it. */
  readonly status: number | NodeJS.Signals;
  readonly stdout: string;
  readonly stderr: string;
}

const ROOT = pathToFileURL(join(import.meta.dirname, '../..')).href;

/** The longest time between the start of a process and its first step; milliseconds. */
const MAX_START_MS = 500;

/** Commands write to this: neither a regular file nor the null device, wherever the simulation's own output goes. */
const NO_FILE = openSync(import.meta.dirname, 'r');

/** The `process` that the modules of a command see; other properties are Node's. */
class Process extends EventEmitter {
  readonly argv: readonly string[];
  readonly env: Settings;
  exitCode: number | undefined;
  readonly written = { stdout: '', stderr: '' };
  readonly stdout = this.#stream('stdout');
  readonly stderr = this.#stream('stderr');

  constructor(args: readonly string[], env: Settings) {
    super();
    this.argv = ['node', 'lead-intake', ...args];
    this.env = env;
  }

  #stream(name: 'stdout' | 'stderr') {
    const stream = Object.assign(new EventEmitter(), {
      fd: NO_FILE,
      write: (text: string, done?: () => void) => {
        this.written[name] += text;
        if (done) setImmediate(done);
        return true;
      },
    });
    return stream;
  }
}

const processes = new WeakMap<SimulatedNode, Process>();

/** Gives modules on the node of a command their own arguments, settings, output and exit status. */
function replaceProcess(): void {
  const own = (name: string | symbol) => {
    const process = processes.get(here());
    return process && name in process ? process : undefined;
  };
  globalThis.process = new Proxy(process, {
    get: (target, name) => {
      const process = own(name);
      const value = Reflect.get(process ?? target, name);
      return process && typeof value === 'function' ? value.bind(process) : value;
    },
    set: (target, name, value) => Reflect.set(own(name) ?? target, name, value),
  });
  const { error } = console;
  console.error = (...values: unknown[]) => {
    const process = processes.get(here());
    if (process) process.stderr.write(`${format(...values)}\n`);
    else error(...values);
  };
}

const sources = new Map<string, string>();

/**
 * Gives each command its own copies of the modules in `operator`: modules that a tagged module imports get its tag. Other
 * modules have no process state, so all processes share them.
 */
function loadOncePerCommand(): void {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context);
      const [, tag] = /\?(\d+)$/.exec(context.parentURL ?? '') ?? [];
      const isOwn = resolved.url.startsWith(`${ROOT}/operator/`);
      return tag && isOwn ? { ...resolved, url: `${resolved.url}?${tag}` } : resolved;
    },
    load(url, context: LoadHookContext, nextLoad) {
      const [file = url, tag] = url.split('?');
      if (!tag || !file.endsWith('.ts')) return nextLoad(url, context);
      const source = sources.get(file) ?? stripTypeScriptTypes(String(nextLoad(file, context).source));
      sources.set(file, source);
      return { format: 'module', source, shortCircuit: true };
    },
  });
}

/** Runs the operator's commands, as on a machine with access to the database. */
export class CommandLine {
  readonly #machine: Machine;
  readonly #env: Settings;
  #count = 0;

  constructor(machine: Machine, env: Settings) {
    this.#machine = machine;
    this.#env = env;
    replaceProcess();
    loadOncePerCommand();
  }

  /** @param endsAfterMs the time after which the command is killed; milliseconds */
  async run(args: readonly string[], endsAfterMs: number): Promise<CommandEnd> {
    const machine = this.#machine;
    this.#count += 1;
    const tag = `?${this.#count}`;
    const { addEveryCommand } = await machine.hold(import(`${ROOT}/operator/commands/every-command.ts${tag}`));
    const { program } = await machine.hold(import(`${ROOT}/operator/commands/program.ts${tag}`));
    const node = new SimulatedNode(`command-${this.#count}`, machine, true);
    const process = new Process(args, this.#env);
    processes.set(node, process);
    machine.note(`${node.name}: ${args.slice(0, 4).join(' ')}`);
    const ended = node.run(async () => {
      await sleep(machine.chance.between(1, MAX_START_MS));
      addEveryCommand();
      await program.parseAsync(process.argv);
      return process.exitCode ?? 0;
    });
    const killed = new Promise<'SIGKILL'>((resolve) => {
      machine.schedule(endsAfterMs, () => resolve('SIGKILL'), machine.outside);
    });
    const status = await Promise.race([ended, killed]);
    node.kill();
    return { status, ...process.written };
  }
}
