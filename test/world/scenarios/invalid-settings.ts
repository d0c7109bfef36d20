import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { now } from '../history.ts';
import type { Settings } from '../settings.ts';
import { aScenario, onRealMachine } from './scenario.ts';

/** The longest that a start may take on a busy machine; milliseconds. */
const ENDS_WITHIN_MS = 40_000;

const CORE = 'src/main.ts';
const GATEWAY = 'gateway/main.ts';

/** An invalid setting, and the process that must refuse it. */
interface Wrong {
  readonly file: string;
  /** The setting that the message must name. */
  readonly named: string;
  readonly settings: Settings;
}

/** Long enough to be searched for in the output, and too short to be a valid token. */
const SHORT_TOKEN = 'open-sesame-4711';

/** docs/settings.md describes the valid values. */
const WRONG: readonly Wrong[] = [
  { file: CORE, named: 'CORE_TOKEN', settings: { CORE_TOKEN: SHORT_TOKEN } },
  { file: GATEWAY, named: 'CORE_TOKEN', settings: { CORE_TOKEN: SHORT_TOKEN } },
  { file: CORE, named: 'CORE_PORT', settings: { CORE_PORT: '70000' } },
  { file: CORE, named: 'DATABASE_URL', settings: { DATABASE_URL: `postgres://lead:${SHORT_TOKEN}@127.0.0.1/leads` } },
  { file: CORE, named: 'SHUTDOWN_DRAIN_MS', settings: { SHUTDOWN_DRAIN_MS: 'soon' } },
  { file: GATEWAY, named: 'LOG_LEVEL', settings: { LOG_LEVEL: 'loud' } },
  { file: GATEWAY, named: 'QUOTA_LIMIT', settings: { QUOTA_LIMIT: '0' } },
];

/** A process is started with an invalid setting: it names the setting, reveals no secret, and does not start. */
export const startWithInvalidSetting = aScenario({
  ...onRealMachine,
  weight: 1,
  choice: fc.record({ which: fc.nat(WRONG.length - 1) }),
  async run(sim, { which }) {
    const { file, named, settings } = WRONG[which] as Wrong;
    const begin = now();
    // If it does start, it conflicts with no other process.
    const apart = {
      CORE_PORT: '0',
      GATEWAY_PORT: '0',
      CORE_METRICS_ADDRESS: '',
      GATEWAY_METRICS_ADDRESS: '',
      DATABASE_URL: `sqlite:${join(tmpdir(), `lead-intake-world-wrong-${randomUUID()}.db`)}`,
    };
    const { status, stdout, stderr } = await sim.world.commandLine.run([], ENDS_WITHIN_MS, {
      file,
      env: { ...apart, ...settings },
    });
    const run = `${file} with ${JSON.stringify(settings)} ends with ${status}: ${stdout}${stderr}`;
    sim.history.note('operator', run, begin);
    // Its machine may have lost its power.
    if (status === 'SIGKILL' && sim.world.disk?.kind === 'forgetful' && sim.isDisturbedSince(begin)) return;
    if (status !== 1 || !stderr.includes(named)) sim.history.fail(`${run}: does not name the invalid setting`);
    if (`${stdout}${stderr}`.includes(SHORT_TOKEN)) sim.history.fail(`${run}: prints a secret`);
  },
});
