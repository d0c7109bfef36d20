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
import { now } from '../history.ts';
import type { Life } from '../life.ts';
import type { LongPages } from '../long-pages.ts';
import { type Caller, letStay, type Seen, type Staying } from '../staying.ts';
import { one } from './choices.ts';
import { hold } from './holders.ts';
import { aPage, FROM_NOBODY } from './stayers.ts';

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
const LOOKED_AT_MS = { from: 3000, until: 6000 };

const hasFiles = Number(spawnSync('sh', ['-c', 'ulimit -Hn']).stdout) >= FILES;

/** The groups of callers that leave responses unread, and how much of these a gateway may buffer. */
const UNREAD = {
  'one key': {
    mostBytes: MAX_UNREAD_BYTES_PER_KEY,
    mostOfOneBytes: Number.POSITIVE_INFINITY,
    callers: ({ secrets }: LongPages) => times(2 * PAGES, () => askingFor(secrets[0], ADDRESSES[0])),
  },
  'one address': {
    mostBytes: MAX_UNREAD_BYTES / ADDRESS_SHARE_DIVISOR,
    mostOfOneBytes: Number.POSITIVE_INFINITY,
    callers: ({ secrets }: LongPages) => times(7 * PAGES, (index) => askingFor(one(secrets, index), ADDRESSES[0])),
  },
  'all keys': {
    mostBytes: MAX_UNREAD_BYTES,
    mostOfOneBytes: Number.POSITIVE_INFINITY,
    callers: ({ secrets }: LongPages) =>
      times(secrets.length * PAGES, (index) => askingFor(one(secrets, index), one(ADDRESSES, index))),
  },
  'those without a key': {
    mostBytes: MAX_UNREAD_BYTES / ADDRESS_SHARE_DIVISOR,
    mostOfOneBytes: MIN_OF_FILE_BYTES,
    callers: () =>
      times(WITHOUT_KEY, (): Caller => {
        const says = lines('GET /docs/assets/scalar.js HTTP/1.1', 'Host: x', '');
        return { ...FROM_NOBODY, from: ADDRESSES[0], isNarrow: true, says };
      }),
  },
} as const;

const askingFor = (secret = '', from: string): Caller => ({
  ...FROM_NOBODY,
  from,
  isNarrow: true,
  says: aPage(secret),
});

/**
 * The maximum number of attempts per crowd until one is not disturbed; and the time after which no further attempt
 * begins: milliseconds.
 */
const TRIES = 3;
const COMES_FOR_MS = 60_000;

/** Sends crowds to gateways, one after the other, that exceed the limits on connections or on unread responses. */
export async function crowd(life: Life, pages: LongPages): Promise<void> {
  const begin = now();
  const crowds = [
    ...Object.keys(UNREAD).map((of) => (url: string) => leaveUnread(life, pages, of as keyof typeof UNREAD, url)),
    ...(hasFiles ? [(url: string) => connectMuch(life, url)] : []),
  ];
  for (const come of crowds) {
    for (let tries = 0; tries < TRIES && now() - begin < COMES_FOR_MS; tries += 1) {
      await life.untilServed();
      const beginning = now();
      await come(one(life.world.gatewayUrls, tries));
      if (!life.isDisturbedSince(beginning)) break;
    }
  }
}

/** Many callers read nothing of responses that together exceed the limit of unread bytes. */
const leaveUnread = (life: Life, pages: LongPages, of: keyof typeof UNREAD, url: string): Promise<void> =>
  hold(life, `answers that nobody takes, to ${of}`, async () => {
    const begin = now();
    const { mostBytes, mostOfOneBytes, callers } = UNREAD[of];
    const staying = letStay(url, callers(pages), of === 'those without a key' ? 0 : GAP_SECONDS);
    await allAnswered(staying);
    await sleep(BOUNDED_WITHIN_MS);
    const seen = staying.seen();
    await staying.leave();
    const bytes = seen.reduce(
      (sum, { status, left }) => sum + (status === 200 ? Math.min(left, mostOfOneBytes) : 0),
      0,
    );
    const answers = seen.filter(({ isOpen, status }) => isOpen && status === 200).length;
    noteCrowd(life, `${of} leave ${bytes} bytes of ${answers} answers unread, of ${mostBytes} that may be`, begin);
    if (bytes > mostBytes && !life.isDisturbedSince(begin))
      life.history.breaks(`${of} leave ${bytes} bytes unread where it may be ${mostBytes}`);
  });

async function allAnswered(staying: Staying): Promise<void> {
  const until = now() + ANSWERED_WITHIN_MS;
  const waits = ({ isOpen, status }: Seen) => isOpen && status === 0;
  while (now() < until && (staying.seen().length === 0 || staying.seen().some(waits))) await sleep(250);
}

/** One address opens as many connections as it can, and is served again after they have ended. */
const connectMuch = (life: Life, url: string): Promise<void> =>
  hold(life, `${CONNECTIONS} connections of one address`, async () => {
    const begin = now();
    const open = await fewestOpen(letStay(url, Array(CONNECTIONS).fill({ ...FROM_NOBODY, from: CONNECTING })));
    noteCrowd(life, `one address has ${open} connections, of ${MAX_PER_ADDRESS} that may be`, begin);
    if (open > MAX_PER_ADDRESS && !life.isDisturbedSince(begin))
      life.history.breaks(`one address has ${open} connections where it may have ${MAX_PER_ADDRESS}`);
    if ((await isServed(url)) || life.isDisturbedSince(begin)) return;
    life.history.breaks('an address whose connections have ended is given no other');
  });

/** Returns the smallest number of connections open in that period; all are closed before it resolves. */
async function fewestOpen(staying: Staying): Promise<number> {
  for (let waited = 0; waited < ANSWERED_WITHIN_MS && staying.seen().length === 0; waited += 100) await sleep(100);
  await sleep(LOOKED_AT_MS.from);
  let fewest = Number.POSITIVE_INFINITY;
  for (let ms = LOOKED_AT_MS.from; ms < LOOKED_AT_MS.until; ms += 500) {
    fewest = Math.min(fewest, staying.seen().filter(({ isOpen }) => isOpen).length);
    await sleep(500);
  }
  await staying.leave();
  return fewest;
}

/** Whether the address of those connections is served, some time after they ended. */
async function isServed(url: string): Promise<boolean> {
  const says = lines('GET /healthz HTTP/1.1', 'Host: x', '');
  for (let tries = 0; tries < 5; tries += 1) {
    await sleep(500);
    const staying = letStay(url, [{ ...FROM_NOBODY, from: CONNECTING, says }]);
    await allAnswered(staying);
    const [seen] = staying.seen();
    await staying.leave();
    if (seen?.status === 200) return true;
  }
  return false;
}

function noteCrowd({ history }: Life, what: string, begin: number): void {
  history.add({ kind: 'other', party: 'stayer', what, span: { begin, end: now() } });
}
