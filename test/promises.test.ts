import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { createVitest } from 'vitest/node';
import { ROOT } from './support/processes.ts';

/** Characters with a special meaning in bash or in the pattern of `-t`. */
const NOT_LITERAL = /['\\()[\]{}*+?^$]/;

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The proof of a claim: the tests of a file whose titles, or whose suites' titles, begin so; or a script. */
interface Proof {
  readonly file: string;
  readonly title: string | undefined;
}

/** The claims of a page, row by row of its tables, with their proofs. */
interface Page {
  readonly path: string;
  readonly claims: readonly { readonly claim: string; readonly proofs: readonly Proof[] }[];
}

const PAGES: readonly Page[] = ['docs/reference/promises.md', 'docs/explanation/lessons.md'].map((path) => ({
  path,
  claims: [...read(path).matchAll(/^\| (?!Promise |Lesson |---)([^|]+) \|[^|]*\| ([^|]*) \|$/gm)].map(
    ([, claim = '', proof = '']) => ({ claim, proofs: proof.split('<br>').map(proofOf) }),
  ),
}));

/** The full titles of all tests of each file with proofs, as `-t` matches them. */
let titles: ReadonlyMap<string, readonly string[]>;
beforeAll(async () => {
  const proofs = PAGES.flatMap(({ claims }) => claims).flatMap((claim) => claim.proofs);
  titles = await titlesOf([...new Set(proofs.flatMap(({ file, title }) => (title ? file : [])))]);
});

describe.each(PAGES)('$path', ({ path, claims }) => {
  test('has a proof in every row', () => {
    const rows = read(path).match(/^\| (?!Promise |Lesson |---)/gm) ?? [];
    expect(rows.length).toBeGreaterThan(20);
    expect(claims).toHaveLength(rows.length);
  });

  test.each(claims)('$claim: existing tests', ({ proofs }) => {
    const { scripts } = JSON.parse(read('package.json'));
    for (const { file, title } of proofs) {
      if (title === undefined) expect(Object.keys(scripts)).toContain(file);
      else {
        expect(title).not.toMatch(NOT_LITERAL);
        const named = titles.get(file)?.filter((full) => ` > ${full}`.includes(` > ${title}`)) ?? [];
        expect({ file, title, exists: named.length > 0 }).toEqual({ file, title, exists: true });
      }
    }
  });
});

/** Parses a proof in a page: `FILE › TITLE`, or `SCRIPT`. */
function proofOf(text: string): Proof {
  const [file = '', title] = text.replaceAll('`', '').split(' › ');
  return { file, title };
}

/** Loads suites without running them. In CI, a test that would be skipped even in a soak does not count. */
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
