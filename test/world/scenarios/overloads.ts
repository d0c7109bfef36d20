import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ADDRESS_SHARE_DIVISOR,
  MAX_CONNECTIONS,
  MAX_UNREAD_BYTES,
  MAX_UNREAD_BYTES_PER_KEY,
} from '../../../gateway/open-connections.ts';
import { times } from '../../support/builders.ts';
import { lines } from '../../support/raw-http.ts';
import { type Caller, type ClientState, type HoldingClients, startClients } from '../held-connections.ts';
import { now } from '../history.ts';
import type { LongPages } from '../long-pages.ts';
import type { Simulation } from '../simulation.ts';
import { one } from './choices.ts';
import { aPage, SILENT_CLIENT } from './held-connections.ts';
import { hold } from './resource-holders.ts';

/** Local addresses that only these callers use, and one that only opens connections. */
const ADDRESSES = ['127.0.0.30', '127.0.0.31', '127.0.0.32'] as const;
const CONNECTING = '127.0.0.40';

/**
 * How long responses to all callers may take, and how long after that memory must be back within its bound;
 * milliseconds.
 */
const ANSWERED_WITHIN_MS = 20_000;
const BOUNDED_WITHIN_MS = 3000;

/** The delay between two page requests: concurrently they would exceed the pending requests that a gateway allows. */
const GAP_SECONDS = 0.1;

/** The number of pages requested per key: as many as it may leave unread. */
const PAGES = 8;

/**
 * The number of callers that request a file, which needs no key, and read nothing. A gateway then buffers about
 * 64 KiB for each, but not always.
 */
const WITHOUT_KEY = 1500;
const MIN_OF_FILE_BYTES = 32 * 1024;

/** More connections than one address may have, and the number of open files that a process needs for them. */
const MAX_PER_ADDRESS = MAX_CONNECTIONS / ADDRESS_SHARE_DIVISOR;
const CONNECTIONS = MAX_PER_ADDRESS + 150;
const FILES = CONNECTIONS + 500;

/** The period in which connections are counted: before idle ones are closed; milliseconds. */
const COUNTED_MS = { from: 3000, until: 6000 };

const hasFiles = Number(spawnSync('sh', ['-c', 'ulimit -Hn']).stdout) >= FILES;

/** The groups of callers that leave responses unread, and how much of these a gateway may buffer. */
const UNREAD = {
  'one key': {
    mostBytes: MAX_UNREAD_BYTES_PER_KEY,
    mostOfOneBytes: Number.POSITIVE_INFINITY,
    callers: ({ secrets }: LongPages) => times(2 * PAGES, () => requestingPage(secrets[0], ADDRESSES[0])),
  },
  'one address': {
    mostBytes: MAX_UNREAD_BYTES / ADDRESS_SHARE_DIVISOR,
    mostOfOneBytes: Number.POSITIVE_INFINITY,
    callers: ({ secrets }: LongPages) => times(7 * PAGES, (index) => requestingPage(one(secrets, index), ADDRESSES[0])),
  },
  'all keys': {
    mostBytes: MAX_UNREAD_BYTES,
    mostOfOneBytes: Number.POSITIVE_INFINITY,
    callers: ({ secrets }: LongPages) =>
      times(secrets.length * PAGES, (index) => requestingPage(one(secrets, index), one(ADDRESSES, index))),
  },
  'clients without a key': {
    mostBytes: MAX_UNREAD_BYTES / ADDRESS_SHARE_DIVISOR,
    mostOfOneBytes: MIN_OF_FILE_BYTES,
    callers: () =>
      times(WITHOUT_KEY, (): Caller => {
        const sends = lines('GET /docs/assets/scalar.js HTTP/1.1', 'Host: x', '');
        return { ...SILENT_CLIENT, from: ADDRESSES[0], isNarrow: true, sends };
      }),
  },
} as const;

const requestingPage = (secret = '', from: string): Caller => ({
  ...SILENT_CLIENT,
  from,
  isNarrow: true,
  sends: aPage(secret),
});

/**
 * The maximum number of attempts per crowd until one is not disturbed; and the time after which no further attempt
 * begins: milliseconds.
 */
const TRIES = 3;
const STARTS_FOR_MS = 60_000;

/** Sends crowds to gateways, one after the other, that exceed the limits on connections or on unread responses. */
export async function overload(sim: Simulation, pages: LongPages): Promise<void> {
  const begin = now();
  const overloads = [
    ...Object.keys(UNREAD).map((of) => (url: string) => leaveUnread(sim, pages, of as keyof typeof UNREAD, url)),
    ...(hasFiles ? [(url: string) => exceedConnections(sim, url)] : []),
  ];
  for (const run of overloads) {
    for (let tries = 0; tries < TRIES && now() - begin < STARTS_FOR_MS; tries += 1) {
      await sim.untilServed();
      const beginning = now();
      await run(one(sim.world.gatewayUrls, tries));
      if (!sim.isDisturbedSince(beginning)) break;
    }
  }
}

/** Many callers read nothing of responses that together exceed the limit of unread bytes. */
const leaveUnread = (sim: Simulation, pages: LongPages, of: keyof typeof UNREAD, url: string): Promise<void> =>
  hold(sim, `unread responses to ${of}`, async () => {
    const begin = now();
    const { mostBytes, mostOfOneBytes, callers } = UNREAD[of];
    const clients = startClients(url, callers(pages), of === 'clients without a key' ? 0 : GAP_SECONDS);
    await allAnswered(clients);
    await sleep(BOUNDED_WITHIN_MS);
    const seen = clients.states();
    await clients.leave();
    const bytes = seen.reduce(
      (sum, { status, left }) => sum + (status === 200 ? Math.min(left, mostOfOneBytes) : 0),
      0,
    );
    const answers = seen.filter(({ isOpen, status }) => isOpen && status === 200).length;
    sim.history.note(
      'slow client',
      `${of} leave ${bytes} bytes of ${answers} responses unread, with a limit of ${mostBytes}`,
      begin,
    );
    if (bytes > mostBytes && !sim.isDisturbedSince(begin))
      sim.history.fail(`${of} leave ${bytes} bytes unread, with a limit of ${mostBytes}`);
  });

async function allAnswered(clients: HoldingClients): Promise<void> {
  const until = now() + ANSWERED_WITHIN_MS;
  const waits = ({ isOpen, status }: ClientState) => isOpen && status === 0;
  while (now() < until && (clients.states().length === 0 || clients.states().some(waits))) await sleep(250);
}

/** One address opens as many connections as it can, and is served again after they have ended. */
const exceedConnections = (sim: Simulation, url: string): Promise<void> =>
  hold(sim, `${CONNECTIONS} connections of one address`, async () => {
    const begin = now();
    const open = await fewestOpen(startClients(url, Array(CONNECTIONS).fill({ ...SILENT_CLIENT, from: CONNECTING })));
    sim.history.note('slow client', `one address has ${open} connections, with a limit of ${MAX_PER_ADDRESS}`, begin);
    if (open > MAX_PER_ADDRESS && !sim.isDisturbedSince(begin))
      sim.history.fail(`one address has ${open} connections, with a limit of ${MAX_PER_ADDRESS}`);
    if ((await isServed(url)) || sim.isDisturbedSince(begin)) return;
    sim.history.fail('an address whose connections have ended cannot connect');
  });

/** Returns the smallest number of connections open in that period; all are closed before it resolves. */
async function fewestOpen(clients: HoldingClients): Promise<number> {
  for (let waited = 0; waited < ANSWERED_WITHIN_MS && clients.states().length === 0; waited += 100) await sleep(100);
  await sleep(COUNTED_MS.from);
  let fewest = Number.POSITIVE_INFINITY;
  for (let ms = COUNTED_MS.from; ms < COUNTED_MS.until; ms += 500) {
    fewest = Math.min(fewest, clients.states().filter(({ isOpen }) => isOpen).length);
    await sleep(500);
  }
  await clients.leave();
  return fewest;
}

/** Whether the address of those connections is served, some time after they ended. */
async function isServed(url: string): Promise<boolean> {
  const sends = lines('GET /healthz HTTP/1.1', 'Host: x', '');
  for (let tries = 0; tries < 5; tries += 1) {
    await sleep(500);
    const clients = startClients(url, [{ ...SILENT_CLIENT, from: CONNECTING, sends }]);
    await allAnswered(clients);
    const [seen] = clients.states();
    await clients.leave();
    if (seen?.status === 200) return true;
  }
  return false;
}
