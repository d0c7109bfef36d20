import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Running } from '../../common/run-until-stopped.ts';
import { startGateway } from '../../gateway/app.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { startCore } from '../../src/app.ts';
import { tokenHash } from '../../src/callers-file.ts';
import { readCoreConfig } from '../../src/config.ts';
import { PUBLIC_URL } from '../support/documented.ts';
import { startProxy } from '../tools/tcp-proxy.ts';
import { CommandLine } from './command-line.ts';
import { type Machine, SimulatedNode } from './machine/machine.ts';
import type { Settings } from './settings.ts';
import type { Part, World } from './world.ts';

const PORTS = { core: 7001, gateway: 7002 } as const;

type Start = (settings: Settings) => Promise<Running>;

/** A process of the product on a machine. */
export class SimulatedPart implements Part {
  readonly name: string;
  readonly nodes: SimulatedNode[] = [];
  /** Whether its counts are in memory, and are lost with the process. */
  readonly losesCounts: boolean;
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
    this.losesCounts = settings.REDIS_URL === undefined;
    this.#start = start;
    this.#onUnexpectedEnd = onUnexpectedEnd;
  }

  get #node(): SimulatedNode | undefined {
    const last = this.nodes.at(-1);
    return last?.isDead ? undefined : last;
  }

  async start(more: Settings = {}): Promise<void> {
    if (this.#node) return;
    const node = new SimulatedNode(`${this.name}-${this.nodes.length + 1}`, this.#machine, true);
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

  async terminate(): Promise<void> {
    const node = this.#node;
    if (!node) return;
    this.#machine.note(`${node.name} is stopped gracefully`);
    await node.run(async () => (await this.#running)?.stop());
    node.kill();
  }

  output(): string {
    return this.nodes.map((node) => node.output).join('');
  }
}

/** The differences between the worlds on different databases. */
export interface Deployment {
  readonly databaseUrl: string;
  readonly corePorts: readonly number[];
  readonly gatewayPorts: readonly number[];
  /** Returns the port that leads to the cores. Called on the node of the network, before there is a token. */
  portToCores(findToken: () => string): Promise<number>;
  /** The parts other than the product that can fail. */
  readonly others?: readonly Part[];
  readonly unexpectedEnds: string[];
}

/** Starts cores and gateways on a machine, with one proxy in front of all cores and one in front of each gateway. */
export async function startDeployment(machine: Machine, more: Settings, deployment: Deployment): Promise<World> {
  const { databaseUrl, corePorts, gatewayPorts, others = [], unexpectedEnds } = deployment;
  const network = new SimulatedNode('network', machine);
  let token = '';
  const corePort = await network.run(() => deployment.portToCores(() => token));
  const [toCore, ...toGateways] = await network.run(async () => [
    await startProxy('127.0.0.1', corePort),
    ...(await Promise.all(gatewayPorts.map((port) => startProxy('127.0.0.1', port)))),
  ]);
  token = crypto.randomUUID();
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-files-'));
  const files = { callers: join(folder, 'callers.json'), gatewayToken: join(folder, 'gateway-token') };
  const gatewayToken = crypto.randomUUID();
  writeFileSync(files.gatewayToken, gatewayToken);
  const callers = { gateway: { may: ['gateway'], tokens: [{ sha256: tokenHash(gatewayToken) }] } };
  writeFileSync(files.callers, JSON.stringify({ callers }));
  const settings = {
    CORE_TOKEN: token,
    CORE_URL: `http://127.0.0.1:${toCore.port}`,
    DATABASE_URL: databaseUrl,
    PUBLIC_URL,
    ...more,
  };
  const failed = (what: string) => unexpectedEnds.push(what);
  const startCoreWith: Start = (env) => startCore(readCoreConfig(env));
  const startGatewayWith: Start = (env) => startGateway(readGatewayConfig(env));
  const makeParts = (name: string, ports: readonly number[], start: Start, settingsAt: (port: string) => Settings) =>
    ports.map((port, index) => {
      const numbered = ports.length === 1 ? name : `${name} ${index + 1}`;
      return new SimulatedPart(numbered, machine, settingsAt(`${port}`), start, failed);
    });
  const { CORE_TOKEN: _, ...gatewaySettings } = settings;
  const gateways = makeParts('gateway', gatewayPorts, startGatewayWith, (port) => ({
    ...gatewaySettings,
    GATEWAY_PORT: port,
    CORE_TOKEN_FILE: files.gatewayToken,
  }));
  const cores = makeParts('core', corePorts, startCoreWith, (port) => ({
    ...settings,
    CORE_PORT: port,
    CORE_CALLERS_FILE: files.callers,
  }));
  const product = [...cores, ...gateways];
  for (const part of product) await part.start();
  const commandLine = new CommandLine(machine, settings);
  return {
    begin(name, code) {
      const node = new SimulatedNode(name, machine);
      node.run(code);
      return node;
    },
    urls: toGateways.map(({ port }) => `http://127.0.0.1:${port}`),
    gatewayUrls: gatewayPorts.map((port) => `http://127.0.0.1:${port}`),
    coreUrls: corePorts.map((port) => `http://127.0.0.1:${port}`),
    coreToken: token,
    databaseUrl,
    files,
    parts: [...product, ...others],
    links: { core: toCore, ...Object.fromEntries(gateways.map(({ name }, index) => [name, toGateways[index]])) },
    commandLine,
    clocks: product.map((part) => ({ name: part.name, set: (seconds) => part.setClock(seconds * 1000) })),
    outputs: () => product.map((part) => part.output()),
    unexpectedEnds,
    async stop() {
      for (const part of [...product, ...others]) await part.kill();
      network.kill();
      rmSync(folder, { recursive: true, force: true });
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
    gatewayPorts: [PORTS.gateway],
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
