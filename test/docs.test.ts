import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Setting, SettingsTable } from '../common/settings.ts';
import { gatewaySettings } from '../gateway/config.ts';
import { PROBLEMS } from '../gateway/problems.ts';
import { coreSettings } from '../src/config.ts';
import { bash, hasShellAndCurl, ROOT, run, temporaryFolder } from './support/processes.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Every page that people read, and those of them that tell of the repository as it is. */
const PAGES = globSync(['*.md', '{docs,docs/*,proto,sdk,sdk/*,examples,examples/recipes/*,bench,test/upgrade}/*.md'], {
  cwd: ROOT,
});
const OF_TODAY = PAGES.filter((page) => /^(?:README|CONTRIBUTING|SECURITY|docs\/.*)\.md$/.test(page));
/** Those whose names in capitals are settings, and not also constants of the code or of the tests. */
const OF_SETTINGS = OF_TODAY.filter((page) => page !== 'CONTRIBUTING.md' && page !== 'docs/reference/bounds.md');

/** The settings table as it has to stand. */
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

test('docs/reference/settings.md has a row for every setting, and no other', () => {
  const [, table = ''] = /<!-- settings -->\n([\s\S]*?)\n<!-- \/settings -->/.exec(read('docs/reference/settings.md')) ?? [];
  expect(table.split('\n').slice(2)).toEqual(settingsRows());
});

test('docs/reference/rest-api.md has a row for every problem code, with its status, and no other', () => {
  const rows = [...read('docs/reference/rest-api.md').matchAll(/^\| (\d{3}) \| `([a-z_]+)` \|/gm)].map(([, status, code]) => [
    code,
    Number(status),
  ]);
  const codes = Object.entries(PROBLEMS).map(([code, { status }]) => [code, status]);
  expect(rows.toSorted()).toEqual(codes.toSorted());
});

test('docs/explanation/decisions.md gives reasons for rules that there are', () => {
  const rules = [...read('docs/reference/contract.md').matchAll(/\*\*(\d[\w.-]+)°?\*\*/g)].map(([, rule]) => rule);
  const cells = [...read('docs/explanation/decisions.md').matchAll(/^\| (`\d[^|]+) \|/gm)].map(([, cell = '']) => cell);
  const named = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, rule]) => rule));
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((rule) => !rules.includes(rule))).toEqual([]);
});

test.skipIf(!hasShellAndCurl)(
  'README.md and docs/tutorial/walkthrough.md lead a newcomer to every answer, command by command',
  { timeout: 240_000 },
  async () => {
    const cwd = temporaryFolder();
    const service = run('start.ts', { cwd, env: { LOG_LEVEL: 'silent' } });
    const [, api = ''] = await service.printed(/REST API {2}(\S+)/);
    const [, rpc = ''] = await service.printed(/RPC {7}(\S+)/);
    const [secret] = await service.printed(/lik_\S{48}/);
    const walkthrough = ['README.md', 'docs/tutorial/walkthrough.md'].map(commandsOf).join('');
    const script = walkthrough
      .replaceAll('lik_…', secret)
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

/** The commands of a page, each in a line of its own. */
function commandsOf(page: string): string {
  const [, commands] = /<!-- walkthrough -->\n```sh\n([\s\S]*?)```/.exec(read(page)) ?? [];
  if (commands === undefined) throw new Error(`${page} has no commands to be led by`);
  return commands.replaceAll(/\\\n\s*/g, '');
}

describe.each(PAGES)('%s', (page) => {
  test('leads only to what is there, in this repository', () => {
    const targets = [...read(page).matchAll(/\]\((?!https?:)([^)]+)\)/g)].map(([, target = '']) => target);
    expect(targets.filter((target) => !isThere(page, target))).toEqual([]);
  });
});

describe.each(OF_TODAY)('%s', (page) => {
  test('names only files and folders that there are', () => {
    // What commands write is not there before them.
    const roots = readdirSync(ROOT).filter((name) => name !== '.generated');
    const paths = quotedIn(page).filter((text) => /^[\w.*{},/-]+$/.test(text) && !text.startsWith('/'));
    const named = paths.filter((path) => IS_FILE.test(path) || (path.includes('/') && roots.includes(firstOf(path))));
    const gone = named.filter((path) => globSync([path, join(dirname(page), path)], { cwd: ROOT }).length === 0);
    expect(gone).toEqual([]);
  });

  test('names only scripts that there are', () => {
    const { scripts } = JSON.parse(read('package.json'));
    const named = [...read(page).matchAll(/npm run (?:-s )?([a-z][\w:]*)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});

test.each(OF_SETTINGS)('%s names only settings that there are', (page) => {
  const settings = Object.keys({ ...coreSettings, ...gatewaySettings });
  const named = quotedIn(page).flatMap((text) => IS_SETTING.exec(text)?.[0] ?? []);
  const isSetting = (name: string) =>
    name.endsWith('*') || settings.includes(name) || settings.includes(name.replace(/_FILE$/, ''));
  expect(named.filter((name) => !isSetting(name))).toEqual([]);
});

const IS_FILE = /\.(?:ts|mjs|md|json|ya?ml|proto|binpb)$/;
const IS_SETTING = /^(?:CORE|GATEWAY|REDIS|DATABASE|QUOTA|SHUTDOWN|PUBLIC|LOG)_[A-Z_]+\*?/;

/** What stands in code quotes, up to the first blank: of a command, its name. */
function quotedIn(page: string): string[] {
  const text = read(page).replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/`([^`\s]+)[^`]*`/g)].map(([, first = '']) => first);
}

const firstOf = (path: string): string => path.split('/')[0] as string;

/** Whether a link leads to a file of this repository, and within a page to one of its headings. */
function isThere(page: string, target: string): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : join(dirname(page), path);
  if (file.startsWith('..') || !existsSync(join(ROOT, file))) return false;
  return (
    anchor === undefined || [...read(file).matchAll(/^#+ (.+)$/gm)].some(([, title = '']) => slugOf(title) === anchor)
  );
}

/** What a heading is called in a link to it. */
const slugOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
