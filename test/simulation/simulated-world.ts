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
import { CommandLine } from './command-line.ts';
import { type Machine, SimulatedNode } from './machine/machine.ts';
import type { Settings } from './settings.ts';
import type { Part, World } from './world.ts';

const PORTS = { core: 7001, gateway: 7002 } as const;

type Start = (settings: Settings) => Promise<Running>;

/** A process of the product on a machine. */
export class SimulatedPart implements Part {
  readonly name: string;
  readonly losesCounts = true;
  readonly nodes: SimulatedNode[] = [];
  clockErrorMs = 0;
  readonly #machine: Machine;
  readonly #settings: Settings;
  readonly #start: Start;
  #running: Promise<Running> | undefined;
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
    this.#running = node.run(() => this.#start({ ...this.#settings, ...more }));
    this.#running.catch((error) => {
      if (node.isDead) return;
      node.kill();
      this.#onUnexpectedEnd(`${node.name} does not start: ${error.stack}`);
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

/** What the worlds on different databases do not have in common. */
export interface Deployment {
  readonly databaseUrl: string;
  readonly corePorts: readonly number[];
  readonly gatewayPort: number;
  /** Returns the port that leads to the cores; it is called on the node of the network, before there is a token. */
  portToCores(tokenOf: () => string): Promise<number>;
  /** What can fail beside the product. */
  readonly others?: readonly Part[];
  readonly unexpectedEnds: string[];
}

/** Starts cores and a gateway on a machine, with a proxy before each kind. */
export async function startDeployment(machine: Machine, more: Settings, deployment: Deployment): Promise<World> {
  const { databaseUrl, corePorts, gatewayPort, others = [], unexpectedEnds } = deployment;
  const network = new SimulatedNode('network', machine);
  let token = '';
  const corePort = await network.run(() => deployment.portToCores(() => token));
  const [toCore, toGateway] = await network.run(() =>
    Promise.all([startProxy('127.0.0.1', corePort), startProxy('127.0.0.1', gatewayPort)]),
  );
  token = crypto.randomUUID();
  const settings = {
    CORE_TOKEN: token,
    CORE_URL: `http://127.0.0.1:${toCore.port}`,
    GATEWAY_PORT: `${gatewayPort}`,
    DATABASE_URL: databaseUrl,
    PUBLIC_URL,
    // Short, so that connections end many times.
    CORE_CONNECTION_MAX_AGE_MS: '1500',
    ...more,
  };
  const failed = (what: string) => unexpectedEnds.push(what);
  const startCoreWith: Start = (env) => startCore(readCoreConfig(env));
  const cores = corePorts.map((port, index) => {
    const name = corePorts.length === 1 ? 'core' : `core ${index + 1}`;
    return new SimulatedPart(name, machine, { ...settings, CORE_PORT: `${port}` }, startCoreWith, failed);
  });
  const gateway = new SimulatedPart(
    'gateway',
    machine,
    settings,
    (env) => startGateway(readGatewayConfig(env)),
    failed,
  );
  const product = [...cores, gateway];
  for (const part of product) await part.start();
  const commandLine = new CommandLine(machine, settings);
  return {
    begin(name, code) {
      const node = new SimulatedNode(name, machine);
      node.run(code);
      return node;
    },
    urls: [`http://127.0.0.1:${toGateway.port}`],
    gatewayUrls: [`http://127.0.0.1:${gatewayPort}`],
    coreUrls: corePorts.map((port) => `http://127.0.0.1:${port}`),
    coreToken: token,
    databaseUrl,
    parts: [...product, ...others],
    links: { gateway: toGateway, core: toCore },
    commandLine,
    clocks: product.map((part) => ({ name: part.name, set: (seconds) => part.setClock(seconds * 1000) })),
    outputs: () => product.map((part) => part.output()),
    unexpectedEnds,
    async stop() {
      for (const part of [...product, ...others]) await part.kill();
      network.kill();
    },
  };
}

/** Starts a core on SQLite and a gateway on a machine. */
export async function startSimulatedWorld(machine: Machine, more: Settings): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-simulation-'));
  const databaseUrl = `sqlite:${join(folder, 'data', 'leads.db')}`;
  const world = await startDeployment(machine, more, {
    databaseUrl,
    corePorts: [PORTS.core],
    gatewayPort: PORTS.gateway,
    portToCores: async () => PORTS.core,
    unexpectedEnds: [],
  });
  return {
    ...world,
    async stop() {
      await world.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
