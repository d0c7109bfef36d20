import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { createVitest } from 'vitest/node';
import { gatewaySettings } from '../gateway/config.ts';
import { coreSettings } from '../src/config.ts';
import { ROOT } from './support/processes.ts';

/** How long it may take to load all suites that prove something; milliseconds. */
const LOADED_WITHIN_MS = 120_000;

/** What bash or the pattern of `-t` would read as something else than itself. */
const NOT_LITERAL = /['\\()[\]{}*+?^$]/;

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** What proves a promise: the tests of a file whose titles, or whose suites' titles, begin so; or a script. */
interface Proof {
  readonly file: string;
  readonly title: string | undefined;
}

/** Each row of the tables of promises: what is promised, and what proves it. */
const promises = [...read('docs/promises.md').matchAll(/^\| (?!Promise |---)([^|]+) \|[^|]*\| ([^|]*) \|$/gm)].map(
  ([, promise = '', proof = '']) => ({ promise, proofs: proof.split('<br>').map(proofOf) }),
);

describe('docs/promises.md', () => {
  /** The full titles of all tests of each file, as `-t` reads them. */
  let titles: ReadonlyMap<string, readonly string[]>;
  beforeAll(async () => {
    const files = promises.flatMap(({ proofs }) => proofs).flatMap(({ file, title }) => (title ? file : []));
    titles = await titlesOf([...new Set(files)]);
  }, LOADED_WITHIN_MS);

  test('has a proof in every row', () => {
    const rows = read('docs/promises.md').match(/^\| (?!Promise |---)/gm) ?? [];
    expect(rows.length).toBeGreaterThan(20);
    expect(promises).toHaveLength(rows.length);
  });

  test.each(promises)('$promise: by tests that there are', ({ proofs }) => {
    const { scripts } = JSON.parse(read('package.json'));
    for (const { file, title } of proofs) {
      if (title === undefined) expect(Object.keys(scripts)).toContain(file);
      else {
        expect(title).not.toMatch(NOT_LITERAL);
        const named = titles.get(file)?.filter((full) => ` > ${full}`.includes(` > ${title}`)) ?? [];
        expect({ file, title, isThere: named.length > 0 }).toEqual({ file, title, isThere: true });
      }
    }
  });
});

describe.each(['SECURITY.md', 'docs/promises.md', 'docs/dependencies.md'])('%s', (page) => {
  const text = read(page);

  test('leads only to what is there', () => {
    const targets = [...text.matchAll(/\]\(([^)#]+)\)/g)].map(([, target = '']) => join(ROOT, page, '..', target));
    expect(targets.filter((target) => !existsSync(target))).toEqual([]);
  });

  test('names only settings that there are', () => {
    const settings = Object.keys({ ...coreSettings, ...gatewaySettings });
    const named = [...text.matchAll(/`((?:CORE|GATEWAY|REDIS|DATABASE|QUOTA|SHUTDOWN|PUBLIC|LOG)_[A-Z_]+\*?)/g)].map(
      ([, name = '']) => name,
    );
    const isThere = (name: string) =>
      name.endsWith('*') || settings.includes(name) || settings.includes(name.replace(/_FILE$/, ''));
    expect(named.filter((name) => !isThere(name))).toEqual([]);
  });
});

/** A proof as it stands in the page: `FILE › TITLE`, or `SCRIPT`. */
function proofOf(text: string): Proof {
  const [file = '', title] = text.replaceAll('`', '').split(' › ');
  return { file, title };
}

/** Loads suites without running them. In CI, what would not be run in a soak either is no test. */
async function titlesOf(files: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
  vi.stubEnv('SOAK', 'yes');
  const vitest = await createVitest('test', {
    config: join(ROOT, 'test/vitest.config.ts'),
    watch: false,
    isolate: false,
    reporters: [],
  });
  try {
    const { testModules } = await vitest.collect([...files], { staticParse: false });
    return new Map(
      testModules.map((module) => [
        module.relativeModuleId,
        [...module.children.allTests()]
          .filter(({ options }) => options.mode === 'run' || process.env.CI !== 'true')
          .map(({ fullName }) => fullName),
      ]),
    );
  } finally {
    await vitest.close();
    vi.unstubAllEnvs();
  }
}
