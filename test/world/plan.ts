import fc from 'fast-check';
import * as byHand from './happenings/by-hand.ts';
import * as clocks from './happenings/clocks.ts';
import * as coreCallers from './happenings/core-callers.ts';
import * as corrections from './happenings/corrections.ts';
import * as crm from './happenings/crm.ts';
import * as disk from './happenings/disk.ts';
import * as exchangeCallers from './happenings/exchange-callers.ts';
import * as exports from './happenings/exports.ts';
import * as failedInserts from './happenings/failed-inserts.ts';
import type { Happening } from './happenings/happening.ts';
import * as hoarder from './happenings/hoarder.ts';
import * as holders from './happenings/holders.ts';
import * as impatient from './happenings/impatient.ts';
import * as lostIndex from './happenings/lost-index.ts';
import * as misfits from './happenings/misfits.ts';
import * as moving from './happenings/moving.ts';
import * as oddRecords from './happenings/odd-records.ts';
import * as operators from './happenings/operators.ts';
import * as packet from './happenings/packet.ts';
import * as scraper from './happenings/scraper.ts';
import * as sdk from './happenings/sdk.ts';
import * as settledRegion from './happenings/settled-region.ts';
import * as terminal from './happenings/terminal.ts';
import * as visitors from './happenings/visitors.ts';
import * as weather from './happenings/weather.ts';
import * as website from './happenings/website.ts';
import * as wrongSettings from './happenings/wrong-settings.ts';
import type { Quota } from './promises/quota.ts';

/** Everything that can happen, by name. */
export const HAPPENINGS: Readonly<Record<string, Happening>> = byName([
  ...[website, sdk, byHand, crm, exports, operators, scraper, clocks, visitors, weather],
  ...[holders, coreCallers, exchangeCallers, failedInserts, disk, misfits, packet, hoarder, moving, impatient],
  ...[oddRecords, lostIndex, terminal, wrongSettings, settledRegion, corrections],
]);

/** In the same order whatever loads the files, so that a seed makes the same plan. */
function byName(files: readonly object[]): Record<string, Happening> {
  const named = files
    .flatMap((file) => Object.entries(file).filter((entry): entry is [string, Happening] => isHappening(entry[1])))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const twice = named.find(([name], index) => named[index + 1]?.[0] === name);
  if (twice) throw new Error(`two happenings are called ${twice[0]}`);
  return Object.fromEntries(named);
}

function isHappening(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'happen' in value;
}

/** What happens, how long after the one before: milliseconds. Nothing waits for what is under way. */
export interface Step {
  readonly afterMs: number;
  readonly name: string;
  readonly choice: unknown;
}

/** A life before it is lived. */
export interface Plan {
  readonly quota: Quota;
  readonly drainMs: number;
  readonly logLevel: string;
  /** What the database is on, where it is a file. */
  readonly disk: 'usual' | 'small' | 'forgetful';
  /** Whether core and gateways speak over TLS. */
  readonly tls: boolean;
  /** Whether clocks are set. */
  readonly clocks: boolean;
  readonly steps: readonly Step[];
  /** Whether some stay for as long as they are let. */
  readonly stays: boolean;
}

/** A life in which nothing is set otherwise than usual. */
export const USUAL: Omit<Plan, 'steps'> = {
  quota: { limit: 1_000_000, windowSeconds: 60 },
  drainMs: 0,
  logLevel: 'info',
  disk: 'usual',
  tls: false,
  clocks: false,
  stays: false,
};

const QUOTAS: readonly Quota[] = [USUAL.quota, USUAL.quota, { limit: 30, windowSeconds: 3 }];

const step: fc.Arbitrary<Step> = fc
  .record({
    afterMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat(60) }),
    happening: fc.oneof(
      ...Object.entries(HAPPENINGS).map(([name, { weight, choice }]) => ({
        weight,
        arbitrary: choice.map((choice) => ({ name, choice })),
      })),
    ),
  })
  .map(({ afterMs, happening }) => ({ afterMs, ...happening }));

const planOf = (length: number): fc.Arbitrary<Plan> =>
  fc.noBias(
    fc.record({
      quota: fc.constantFrom(...QUOTAS),
      drainMs: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 500, 500, 11_000),
      logLevel: fc.constantFrom('info', 'debug', 'trace'),
      disk: fc.constantFrom('usual', 'small', 'forgetful'),
      tls: fc.constantFrom(false, false, true),
      clocks: fc.boolean(),
      steps: fc.array(step, { minLength: 1, maxLength: length, size: 'max' }),
      stays: fc.constantFrom(false, false, false, false, false, true),
    }),
  );

/**
 * The plan of a seed.
 *
 * @param length how many steps it has at most
 */
export function planFrom(seed: number, length: number): Plan {
  const [plan] = fc.sample(planOf(length), { seed, numRuns: 1 });
  if (!plan) throw new Error(`there is no plan of ${seed}`);
  return plan;
}
