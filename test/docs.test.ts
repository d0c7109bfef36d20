import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DATA_FIELDS, TEXT_FIELDS } from '../common/rules/field-rules.ts';
import { SETTINGS, type SettingTraits } from '../common/settings-table.ts';
import { gatewaySettings } from '../gateway/config.ts';
import { openSite } from '../gateway/docs/site.ts';
import { CSV_HEADER } from '../operator/csv-export.ts';
import { LeadSchema } from '../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { relaySettings } from '../relay/config.ts';
import { coreSettings } from '../src/config.ts';
import { CLI } from './support/command-line.ts';
import { COMMANDS } from './support/every-command.ts';
import { MARKDOWN_PAGES, type MarkdownPage } from './tools/markdown.ts';
import { bash, hasShellAndCurl, ROOT, run, temporaryFolder } from './tools/processes.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The pages about the repository as it is now. Others have examples or are about earlier releases. */
const CURRENT_PAGES = MARKDOWN_PAGES.map(({ path }) => path).filter((path) =>
  /^(?:README|CONTRIBUTING|SECURITY|test\/README|docs\/.*)\.md$/.test(path),
);
/** The pages in which every name in capitals is a setting. Others also name constants. */
const PAGES_WITH_SETTINGS = CURRENT_PAGES.filter(
  (page) => page !== 'test/README.md' && page !== 'docs/reference/bounds.md',
);

/** Returns the expected beginnings of the rows in the table of settings. */
const settingsRows = () =>
  Object.entries<SettingTraits>(SETTINGS).map(([name, { fallback, fromFile }]) => {
    const parts = Object.entries({ core: coreSettings, gateway: gatewaySettings, relay: relaySettings });
    const processes = parts.flatMap(([part, settings]) => (name in settings ? [part] : [])).join(', ');
    return `| \`${name}\`${fromFile ? ' °' : ''} | ${processes} | ${fallback === undefined ? '' : `\`${fallback}\``} |`;
  });

// @proves docs-2
test('settings.md has a row for every setting, and no other', () => {
  const [, table = ''] =
    /<!-- settings -->\n([\s\S]*?)\n<!-- \/settings -->/.exec(read('docs/reference/settings.md')) ?? [];
  const rows = table.split('\n').slice(2);
  expect(rows.map((row) => row.replace(/[^|]+ \|$/, ''))).toEqual(settingsRows());
});

// @proves docs-2
test('command-line.md has exactly the existing commands, and other pages name no others', () => {
  const commands = COMMANDS.map(([name]) => name);
  const [table = ''] = read('docs/reference/command-line.md').split(/^## /m);
  const cells = [...table.matchAll(/^\| (`[^|]+`) \|/gm)].map(([, cell = '']) => cell);
  const documented = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
  expect(commands.length).toBeGreaterThan(30);
  expect(documented.toSorted()).toEqual(commands.toSorted());

  // Pages name only these commands, or a group of them.
  const named = CURRENT_PAGES.flatMap((page) =>
    [...read(page).matchAll(/\blead-intake (?:--json )?([a-z][a-z-]*)(?: ([a-z-]+))?/g)].map(([text, group, name]) => ({
      page,
      text,
      isCommand: commands.some(
        (command) => `${text} `.includes(` ${command} `) || (!name && command.startsWith(`${group} `)),
      ),
    })),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ isCommand }) => !isCommand)).toEqual([]);
});

// @proves docs-2
test('observability.md has a row for every metric, and no other', () => {
  const sources = ['common/metrics.ts', 'gateway/observation.ts', 'relay/observation.ts', 'src/rpc/metrics.ts']
    .map(read)
    .join('\n');
  const metrics = [...sources.matchAll(/'(lead_intake_\w+)'/g)].map(([, name]) => name);
  const [, section = ''] = read('docs/reference/observability.md').split(/^## (?=Metrics)/m);
  const rows = [...section.matchAll(/^\| (`lead_intake_[^|]+) \|/gm)].map(([, cell = '']) => cell);
  const documented = rows.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
  expect(metrics.length).toBeGreaterThan(20);
  expect(documented.toSorted()).toEqual(metrics.toSorted());
});

test('the reference pages list all fields of a creation, a correction and an export', () => {
  const mask = DATA_FIELDS.map((field) => LeadSchema.field[field].name);
  for (const [path, names] of [
    ['docs/reference/command-line.md', CSV_HEADER.trim().split(',')],
    ['docs/reference/rpc-api.md', mask],
    ['proto/leadintake/v1/lead_intake.proto', mask],
  ] as const)
    expect(read(path).replaceAll(/\n(?: *\/\/)? */g, ' ')).toContain(`\`${names.join('`, `')}\``);
  for (const field of TEXT_FIELDS) expect(read('docs/reference/contract.md')).toContain(`| **2.2.${field}** |`);
});

// @proves docs-1
test.skipIf(!hasShellAndCurl)(
  'the commands of README.md and walkthrough.md get the responses that they show',
  async () => {
    const cwd = temporaryFolder();
    // On a busy machine, the requests that use up the quota take longer than the usual window of a minute.
    const env = { LOG_LEVEL: 'silent', QUOTA_WINDOW_SECONDS: '3600' };
    const service = run('start.ts', { cwd, env });
    const [, api = ''] = await service.printed(/REST API {2}(\S+)/);
    const [, rpc = ''] = await service.printed(/RPC {7}(\S+)/);
    const [secret] = await service.printed(/lik_\S{48}/);
    const walkthrough = ['README.md', 'docs/tutorial/walkthrough.md'].map(findCommands).join('');
    const script = walkthrough
      .replaceAll('lik_…', secret)
      .replaceAll('http://127.0.0.1:8080', new URL(api).origin)
      .replace('CORE_PORT=1 ', 'CORE_URL=http://127.0.0.1:1 ')
      // The number of each line is printed before its output.
      .split('\n')
      .map((line, number) => `echo "@${number}@"\n${line}`)
      .join('\n');
    const expected = [...walkthrough.split('\n').entries()].flatMap(([number, line]) => {
      const [, answer] = / # → (.+)$/.exec(line) ?? [];
      return answer === undefined ? [] : [{ number, line, answer }];
    });
    expect(expected.length).toBeGreaterThan(25);

    // Runs the command line without npm, which takes longer than most commands.
    const output = await bash(`cd ${ROOT}\nset -m\nnpx() { ${CLI} "\${@:2}"; }\n${script}`, {
      DATABASE_URL: `sqlite:${join(cwd, 'data/lead-intake.db')}`,
      CORE_URL: rpc,
    });

    for (const { number, line, answer } of expected) {
      const [, printed = ''] = new RegExp(`@${number}@\n([\\s\\S]*?)(?=@${number + 1}@)`).exec(output) ?? [];
      expect({ line, printed }).toEqual({ line, printed: expect.stringContaining(answer) });
    }
    // Each response ends with a line break, so that the next prompt begins a line.
    expect(output).not.toMatch(/.@\d+@$/m);
  },
);

test('no two pages use the same contact, and no command has a fixed Idempotency-Key', () => {
  const pages = ['README.md', 'start.ts', 'docs/tutorial/walkthrough.md', 'examples/README.md'];
  const docsSources = ['gateway/docs/pages/quick-start.md', 'gateway/docs/examples.ts'];
  const contacts = [...pages, ...docsSources].flatMap((page) => {
    const found = [...read(page).matchAll(/\bvalue"?: ?["']([^"']+)["']/g)].map(([, value = '']) =>
      value.toLowerCase(),
    );
    expect({ page, found }).toEqual({ page, found: expect.arrayContaining([expect.stringMatching(/@|^\+/)]) });
    return [...new Set(found.map((value) => (value.startsWith('+') ? value.replaceAll(/\D/g, '') : value)))];
  });
  expect(contacts.toSorted()).toEqual([...new Set(contacts)].toSorted());
  const commands = MARKDOWN_PAGES.flatMap(({ blocks }) => blocks.map((block) => block.commands));
  expect(commands.filter((text) => /Idempotency-Key: ?[\da-f]{8}-/i.test(text))).toEqual([]);
});

/** Returns the commands of a page, one per line. */
function findCommands(page: string): string {
  const [, commands] = /<!-- walkthrough -->\n```sh\n([\s\S]*?)```/.exec(read(page)) ?? [];
  if (commands === undefined) throw new Error(`${page} has no commands marked walkthrough`);
  return commands.replaceAll(/\\\n\s*/g, '');
}

describe('the docs', () => {
  const pages = MARKDOWN_PAGES.filter(({ path }) => path.startsWith('docs/'));
  const index = pages.find(({ path }) => path === 'docs/README.md') as MarkdownPage;

  test('the docs have an index that links to each page', () => {
    const linked = index.links.map((link) => join('docs', link));
    expect(pages.filter((page) => page !== index && !linked.includes(page.path)).map(({ path }) => path)).toEqual([]);
  });
});

test('each picture is shown by a page', () => {
  const shown = MARKDOWN_PAGES.flatMap(({ path, links }) => links.map((link) => join(dirname(path), link)));
  expect(globSync('docs/**/*.svg', { cwd: ROOT }).filter((picture) => !shown.includes(picture))).toEqual([]);
});

describe.each(MARKDOWN_PAGES)('$path', ({ path, links }) => {
  // @proves docs-2
  test('the page has no broken link', () => {
    expect(links.filter((link) => !isIntact(path, link))).toEqual([]);
  });
});

// @proves docs-2
test('each page that code, configuration or a program names exists and has the named heading', () => {
  const files = globSync(
    '{src,common,gateway,relay,operator,verify,proto,ops,bench,test,sdk,.ci}/**/*.{ts,proto,yaml,yml,sh,php,py,service}',
    {
      cwd: ROOT,
      exclude: ['**/node_modules/**', '**/vendor/**', 'test/docs.test.ts'],
    },
  );
  const named = files.flatMap((file) =>
    [...read(file).matchAll(/\bdocs\/(?:explanation|how-to|reference|tutorial)\/[\w-]+\.md(?:#[\w-]+)?/g)].map(
      ([link]) => ({
        file,
        link,
      }),
    ),
  );
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter(({ link }) => !isIntact('README.md', link))).toEqual([]);
});

describe.each(CURRENT_PAGES)('%s', (page) => {
  test('the page names only existing files and folders', () => {
    // Commands of the docs create .generated, so it may be missing.
    const roots = readdirSync(ROOT).filter((name) => name !== '.generated');
    const paths = quotedIn(page).filter((text) => /^[\w.*{},/-]+$/.test(text) && !text.startsWith('/'));
    const named = paths.filter((path) => IS_FILE.test(path) || (path.includes('/') && roots.includes(findFirst(path))));
    const missing = named.filter((path) => globSync([path, join(dirname(page), path)], { cwd: ROOT }).length === 0);
    expect(missing).toEqual([]);
  });

  test('the page names only existing npm scripts', () => {
    const { scripts } = JSON.parse(read('package.json'));
    const named = [...read(page).matchAll(/npm run (?:-s )?([a-z][\w:]*)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});

test.each(PAGES_WITH_SETTINGS)('%s names only existing settings', (page) => {
  const settings = Object.keys(SETTINGS);
  const named = quotedIn(page).flatMap((text) => IS_SETTING.exec(text)?.[0] ?? []);
  const isSetting = (name: string) =>
    name.endsWith('*') || settings.includes(name) || settings.includes(name.replace(/_FILE$/, ''));
  expect(named.filter((name) => !isSetting(name))).toEqual([]);
});

const IS_FILE = /\.(?:ts|mjs|md|json|ya?ml|proto|binpb)$/;
const IS_SETTING = /^(?:CORE|GATEWAY|REDIS|DATABASE|QUOTA|SHUTDOWN|PUBLIC|LOG)_[A-Z_]+\*?/;

/** Returns the texts in backticks, each up to its first blank: of a command, only its name. */
function quotedIn(page: string): string[] {
  const text = read(page).replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/`([^`\s]+)[^`]*`/g)].map(([, first = '']) => first);
}

const findFirst = (path: string): string => path.split('/')[0] as string;

/**
 * Whether a link leads to an existing file or folder, or to a path that a gateway serves, and its anchor to a heading there.
 * Addresses of other hosts only need a valid form.
 */
function isIntact(page: string, link: string): boolean {
  if (/^https?:/.test(link))
    return URL.canParse(link) && (link.startsWith('https:') || new URL(link).hostname === '127.0.0.1');
  const [target = '', anchor] = link.split('#');
  if (target.startsWith('/')) {
    if (!SERVED.includes(target)) return false;
    const source = `gateway${target === '/docs' ? '/docs/pages/docs' : target.replace('/docs/', '/docs/pages/')}.md`;
    return anchor === undefined || MARKDOWN_PAGES.some(({ path, anchors }) => path === source && anchors.has(anchor));
  }
  const path = target === '' ? page : join(dirname(page), target);
  if (path.startsWith('..') || !existsSync(join(ROOT, path))) return false;
  return anchor === undefined || MARKDOWN_PAGES.some((other) => other.path === path && other.anchors.has(anchor));
}

/** The paths that a gateway serves to readers: the pages of `/docs`, their assets, and the OpenAPI document. */
const SERVED = [
  '/v1/openapi.json',
  ...openSite({ publicUrl: 'https://api.example.com', limit: 0, windowSeconds: 0 }).paths.keys(),
];
