// Loads before any life, which would otherwise load it when it reads an address of MongoDB.
import '../../src/store/mongo/mongo-store.ts';
import { startBalancer } from '../support/balancer.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import { type Machine, SimulatedNode } from './machine/machine.ts';
import type { Network } from './machine/network.ts';
import { RedisDeployment } from './redis/redis-deployment.ts';
import type { RedisWorld } from './redis-scenarios.ts';
import { ReplicaSet } from './replica-set/replica-set.ts';
import type { MongoWorld } from './replica-set-scenarios.ts';
import type { Settings } from './settings.ts';
import { startDeployment } from './simulated-world.ts';
import type { Part } from './world.ts';

const PORTS = {
  cores: [7001, 7002],
  gateways: [7003, 7004],
  members: [7011, 7012, 7013],
  redis: 7021,
} as const;

/** The interval of the load balancer's probes; milliseconds. */
const PROBE_MS = 500;

/** Address options that ask for weaker guarantees than the service promises, and that it must ignore. */
const WEAK_GUARANTEES = 'w=0&journal=false&readConcernLevel=local&readPreference=secondaryPreferred';

/** Starts two cores behind a load balancer and two gateways on a machine, on a replica set of three members and a Redis. */
export async function startSimulatedMongoWorld(
  machine: Machine,
  more: Settings,
  network: Network,
): Promise<MongoWorld & RedisWorld> {
  const unexpectedEnds: string[] = [];
  const members: SimulatedNode[] = [];
  const set = new ReplicaSet(PORTS.members, {
    note: (what) => machine.note(what),
    fail: (error) => unexpectedEnds.push(`the replica set: ${error.stack}`),
    host(number) {
      const node = new SimulatedNode(`member ${number + 1}`, machine);
      members[number] = node;
      return node;
    },
  });
  /** The member that stays lost. */
  let lost: number | undefined;
  const others = PORTS.members.map((_, number): Part => {
    set.start(number);
    return {
      name: `member ${number + 1}`,
      losesCounts: false,
      kill: async () => set.kill(number),
      start: async () => {
        if (number !== lost) set.start(number);
      },
      pause: () => members[number]?.pause(),
      resume: () => {
        if (number !== lost) members[number]?.resume();
      },
    };
  });

  /** The disconnected member, and the names of the cores on its side. */
  let apart: { readonly member: number; readonly cores: readonly string[] } | undefined;
  const isApart = (node: SimulatedNode) =>
    apart !== undefined &&
    (members[apart.member] === node || apart.cores.some((core) => node.name.startsWith(`${core}-`)));
  const redis = new RedisDeployment(machine, PORTS.redis, (error) => unexpectedEnds.push(`Redis: ${error.stack}`));
  network.isCut = (one, other) =>
    redis.isCut(one, other) ||
    (apart !== undefined && (members.includes(one) || members.includes(other)) && isApart(one) !== isApart(other));

  const settings = { ...more, REDIS_URL: `redis://127.0.0.1:${PORTS.redis}` };
  const world = await startDeployment(machine, settings, {
    databaseUrl: `${set.url('leads')}&${WEAK_GUARANTEES}`,
    corePorts: PORTS.cores,
    gatewayPorts: PORTS.gateways,
    portToCores: startCoreBalancer,
    others,
    unexpectedEnds,
  });
  return {
    ...world,
    redis,
    counts: redis.counts,
    cluster: {
      set,
      cutOff(member, cores) {
        set.cutOff(member);
        apart = { member, cores: cores.map((index) => `core ${index + 1}`) };
      },
      heal() {
        if (apart) set.heal(apart.member);
        apart = undefined;
      },
      lose(member, how) {
        if (lost !== undefined) return;
        lost = member;
        if (how === 'killed') set.kill(member);
        else members[member]?.pause();
      },
    },
  };
}

/** Starts a load balancer in front of the cores, and returns its port. */
async function startCoreBalancer(findToken: () => string): Promise<number> {
  // Reuses connections, because new ones would dominate the events of an idle system.
  const cores = new Map<string, CoreClients>();
  const isServing = async (url: string) => {
    const core = cores.get(url) ?? connectToCore(url, findToken());
    cores.set(url, core);
    const answer = await core.directory.getStudio({ studioId: 'unknown' }, { timeoutMs: 2000 }).catch(String);
    if (/not.?found/i.test(`${answer}`)) return true;
    cores.delete(url);
    core.close();
    return false;
  };
  const urls = PORTS.cores.map((port) => `http://127.0.0.1:${port}`);
  const { url } = await startBalancer(urls, isServing, PROBE_MS);
  return Number(new URL(url).port);
}
