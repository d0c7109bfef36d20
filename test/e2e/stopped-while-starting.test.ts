import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { times } from '../support/builders.ts';
import { ROOT, readAddress, run, start, temporaryFolder } from '../tools/processes.ts';

/** Pauses a process for half a second at one of its modules, announces that, and finally prints how many it loaded. */
const PAUSING = `
import { registerHooks } from 'node:module';
import { writeSync } from 'node:fs';
let loaded = 0;
process.on('exit', () => writeSync(2, 'loaded ' + loaded + ' modules\\n'));
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) loaded += 1;
    if (loaded === Number(process.env.PAUSE_AT) && url.startsWith('file:')) {
      writeSync(2, 'paused\\n');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
    }
    return next(url, context);
  },
});
`;

const pausing = (module: number) => ({
  NODE_OPTIONS: `--import=data:text/javascript;base64,${Buffer.from(PAUSING).toString('base64')}`,
  PAUSE_AT: `${module}`,
});

const database = () => ({ DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}` });

/** The number of modules that a process loads before it handles signals. The first is its own file. */
const BEFORE_HANDLING = 2;

const MOMENTS = process.env.SOAK ? 20 : 3;

/** The modules at which each process of `npm start` gets the signal. */
const MOMENTS_OF_START = process.env.SOAK ? [1, BEFORE_HANDLING + 1, 100] : [BEFORE_HANDLING + 1];

// @proves crashes-7
describe('a process that gets SIGTERM while it starts', () => {
  test.each(['src/main.ts', 'gateway/main.ts'])('%s ends in order after SIGTERM at any module', async (file) => {
    const whole = run(file, { env: { ...database(), ...pausing(0) } });
    await readAddress(whole);
    whole.child.kill('SIGTERM');
    await whole.ended();
    // A thread of the process may print its count, too.
    const counts = [...whole.output().matchAll(/loaded (\d+) modules/g)].map(([, count]) => Number(count));
    const step = (Math.max(...counts) - BEFORE_HANDLING - 1) / (MOMENTS - 1);
    expect(step).toBeGreaterThan(1);

    for (const moment of times(MOMENTS, (index) => BEFORE_HANDLING + 1 + Math.floor(index * step))) {
      const starting = start(file, { env: { ...database(), ...pausing(moment) } });
      await starting.printed(/paused/);
      starting.child.kill('SIGTERM');
      expect({ moment, status: await starting.ended() }).toEqual({ moment, status: 0 });
    }
  });

  test('npm start ends in order and leaves no process if it gets SIGTERM while its processes start', async () => {
    for (const process of [1, 2, 3]) {
      for (const moment of MOMENTS_OF_START) {
        const starting = start('start.ts', { cwd: temporaryFolder(), env: pausing(moment) });
        // At the first module, start.ts itself also prints a line.
        const pauses = moment === 1 ? process + 1 : process;
        await starting.printed(new RegExp(`(?:paused[\\s\\S]*){${pauses}}`));
        starting.child.kill('SIGTERM');
        // The output ends when all processes have ended.
        expect({ process, moment, status: await starting.ended() }).toEqual({ process, moment, status: 0 });
      }
    }
  });
});

test.each(['core', 'gateway'])('the command of the systemd unit of a %s receives SIGTERM', async (name) => {
  const unit = readFileSync(join(ROOT, `ops/systemd/lead-intake-${name}@.service`), 'utf8');
  const [, file = ''] = /^ExecStart=\/usr\/bin\/node (\S+)$/m.exec(unit) ?? [];
  const running = run(file, { env: database() });
  await readAddress(running);
  running.child.kill('SIGTERM');
  expect(await running.ended()).toBe(0);
});
