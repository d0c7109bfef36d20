import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Running } from '../../common/run-until-stopped.ts';
import { startGateway } from '../../gateway/app.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { startCore } from '../../src/app.ts';
import { readCoreConfig } from '../../src/config.ts';
import { PUBLIC_URL } from '../support/documented.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import type { CommandLine } from '../world/command-line.ts';
import { SqliteAccess } from '../world/direct-access.ts';
import type { Settings } from '../world/settings.ts';
import type { Part, World } from '../world/world.ts';
import { SimulatedCommandLine } from './command-line.ts';
import { type Machine, SimulatedNode } from './machine.ts';

const PORTS = { core: 7001, gateway: 7002 } as const;

type Start = (settings: Settings) => Promise<Running>;

/** A process of the product on a machine. */
class SimulatedPart implements Part {
  readonly name: string;
  readonly losesCounts = true;
  readonly nodes: SimulatedNode[] = [];
  clockErrorMs = 0;
  readonly #machine: Machine;
  readonly #settings: Settings;
  readonly #start: Start;
  #running: Promise<Running> | undefined;
  #mayEnd = false;
  readonly #onUnexpectedEnd: (what: string) => void;

  constructor(
    name: string,
    machine: Machine,
    settings: Settings,
    start: Start,
    onUnexpectedEnd: (what: string) => void,
  ) {
    this.name = name;
    this.#machine = machine;
    this.#settings = settings;
    this.#start = start;
    this.#onUnexpectedEnd = onUnexpectedEnd;
  }

  get #node(): SimulatedNode | undefined {
    const last = this.nodes.at(-1);
    return last?.isDead ? undefined : last;
  }

  async start(more: Settings = {}): Promise<void> {
    if (this.#node) return;
    const node = new SimulatedNode(`${this.name}-${this.nodes.length + 1}`, this.#machine);
    node.clockErrorMs = this.clockErrorMs;
    this.#machine.note(`${node.name} starts`);
    this.nodes.push(node);
    this.#mayEnd = false;
    this.#running = node.run(() => this.#start({ ...this.#settings, ...more }));
    this.#running.catch((error) => {
      if (node.isDead) return;
      node.kill();
      if (!this.#mayEnd) this.#onUnexpectedEnd(`${node.name} does not start: ${error.stack}`);
    });
  }

  async kill(): Promise<void> {
    this.#node?.kill();
  }

  pause(): void {
    this.#node?.pause();
  }

  resume(): void {
    for (const node of this.nodes) if (node.isPaused) node.resume();
  }

  mayEnd(): void {
    this.#mayEnd = true;
  }

  setClock(aheadMs: number): void {
    this.clockErrorMs = aheadMs;
    if (this.#node) this.#node.clockErrorMs = aheadMs;
  }

  async terminate(): Promise<number> {
    const node = this.#node;
    if (!node) return 0;
    this.#machine.note(`${node.name} is stopped in order`);
    await node.run(async () => (await this.#running)?.stop());
    node.kill();
    return 0;
  }

  output(): string {
    return this.nodes.map((node) => node.output).join('');
  }
}

/** Starts a core on SQLite and a gateway on a machine, with a proxy before each. */
export async function startSimulatedWorld(machine: Machine, more: Settings): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-simulation-'));
  const databaseUrl = `sqlite:${join(folder, 'data', 'leads.db')}`;
  const network = new SimulatedNode('network', machine);
  const [toCore, toGateway] = await network.run(() =>
    Promise.all([startProxy('127.0.0.1', PORTS.core), startProxy('127.0.0.1', PORTS.gateway)]),
  );
  const settings = {
    CORE_PORT: `${PORTS.core}`,
    CORE_TOKEN: crypto.randomUUID(),
    CORE_URL: `http://127.0.0.1:${toCore.port}`,
    GATEWAY_PORT: `${PORTS.gateway}`,
    DATABASE_URL: databaseUrl,
    PUBLIC_URL,
    // Short, so that connections end many times.
    CORE_CONNECTION_MAX_AGE_MS: '1500',
    ...more,
  };
  const unexpectedEnds: string[] = [];
  const failed = (what: string) => unexpectedEnds.push(what);
  const core = new SimulatedPart('core', machine, settings, (env) => startCore(readCoreConfig(env)), failed);
  const gateway = new SimulatedPart(
    'gateway',
    machine,
    settings,
    (env) => startGateway(readGatewayConfig(env)),
    failed,
  );
  const parts = [core, gateway];
  for (const part of parts) await part.start();
  const commandLine = new SimulatedCommandLine(machine, settings);
  return {
    isSimulated: true,
    begin(name, code) {
      const node = new SimulatedNode(name, machine);
      node.run(code);
      return node;
    },
    urls: [`http://127.0.0.1:${toGateway.port}`],
    gatewayUrls: [`http://127.0.0.1:${PORTS.gateway}`],
    coreUrls: [`http://127.0.0.1:${PORTS.core}`],
    // They tell of the real process.
    metricsUrls: [],
    coreToken: settings.CORE_TOKEN,
    databaseUrl,
    parts,
    links: { gateway: toGateway, core: toCore },
    commandLine: commandLine as unknown as CommandLine,
    directAccess: new SqliteAccess(commandLine as unknown as CommandLine),
    certificates: undefined,
    clocks: parts.map((part) => ({ name: part.name, set: (seconds) => part.setClock(seconds * 1000) })),
    disk: undefined,
    processes: () => [],
    outputs: () => parts.map((part) => part.output()),
    unexpectedEnds,
    async stop() {
      for (const part of parts) await part.kill();
      network.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
