import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Setting, SettingsTable } from '../common/settings.ts';
import { gatewaySettings } from '../gateway/config.ts';
import { PROBLEMS } from '../gateway/problems.ts';
import { coreSettings } from '../src/config.ts';
import { bash, hasShellAndCurl, ROOT, run, temporaryFolder } from './support/processes.ts';

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');

/** The settings table as it has to stand in the README. */
function settingsRows(): string[] {
  const names = new Set([...Object.keys(coreSettings), ...Object.keys(gatewaySettings)]);
  return [...names].map((name) => {
    const core = (coreSettings as SettingsTable)[name];
    const gateway = (gatewaySettings as SettingsTable)[name];
    const { about, fallback, fromFile } = (core ?? gateway) as Setting<unknown>;
    const of = core && gateway ? 'both' : core ? 'core' : 'gateway';
    return `| \`${name}\`${fromFile ? ' °' : ''} | ${of} | ${fallback === undefined ? '' : `\`${fallback}\``} | ${about} |`;
  });
}

describe('the README', () => {
  test('has a row for every setting, and no other', () => {
    const [, table = ''] = /<!-- settings -->\n([\s\S]*?)\n<!-- \/settings -->/.exec(readme) ?? [];
    expect(table.split('\n').slice(2)).toEqual(settingsRows());
  });

  test('has a row for every problem code, with its status, and no other', () => {
    const rows = [...readme.matchAll(/^\| (\d{3}) \| `([a-z_]+)` \|/gm)].map(([, status, code]) => [
      code,
      Number(status),
    ]);
    const codes = Object.entries(PROBLEMS).map(([code, { status }]) => [code, status]);
    expect(rows.toSorted()).toEqual(codes.toSorted());
  });

  test.skipIf(!hasShellAndCurl)(
    'leads a newcomer to every answer, command by command',
    { timeout: 120_000 },
    async () => {
      const cwd = temporaryFolder();
      const service = run('start.ts', { cwd, env: { LOG_LEVEL: 'silent' } });
      const [, api = ''] = await service.printed(/REST API {2}(\S+)/);
      const [, rpc = ''] = await service.printed(/RPC {7}(\S+)/);
      const [secret] = await service.printed(/lik_\S{48}/);
      const [, walkthrough = ''] = /<!-- walkthrough -->\n```sh\n([\s\S]*?)```/.exec(readme) ?? [];
      const script = walkthrough
        .replace('lik_…', secret)
        .replaceAll('http://127.0.0.1:8080', new URL(api).origin)
        .replace('CORE_PORT=1 ', 'CORE_URL=http://127.0.0.1:1 ')
        // Every line's output stands between its number and the next one's.
        .split('\n')
        .map((line, number) => `echo "@${number}@"\n${line}`)
        .join('\n');
      const expected = [...walkthrough.split('\n').entries()].flatMap(([number, line]) => {
        const [, answer] = / # → (.+)$/.exec(line) ?? [];
        return answer === undefined ? [] : [{ number, line, answer }];
      });
      expect(expected.length).toBeGreaterThan(25);

      const output = await bash(`cd ${ROOT}\nset -m\n${script}`, {
        DATABASE_URL: `sqlite:${join(cwd, 'data/lead-intake.db')}`,
        CORE_URL: rpc,
      });

      for (const { number, line, answer } of expected) {
        const [, printed = ''] = new RegExp(`@${number}@\n([\\s\\S]*?)(?=@${number + 1}@)`).exec(output) ?? [];
        expect({ line, printed }).toEqual({ line, printed: expect.stringContaining(answer) });
      }
      const shown = expected.map(({ answer }) => answer);
      // Nobody can be led to a fault of ours.
      const codes = Object.keys(PROBLEMS).filter((code) => code !== 'internal_error');
      expect(codes.filter((code) => !shown.includes(code))).toEqual([]);
    },
  );
});
