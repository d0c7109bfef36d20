import { readFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import { join } from 'node:path';
import {
  archiveNames,
  PACKAGE_SETTINGS,
  PACKAGE_TITLES,
  type PackageRelease,
} from '../../../common/package-settings.ts';
import { PROBLEM_CODES, PROBLEM_MEDIA_TYPE, PROBLEMS, type ProblemCode, problemBody } from '../../problems.ts';
import { codeSamples } from '../code-samples.ts';
import { REQUEST_ID, toExample } from '../examples.ts';
import { openApiInfo } from '../openapi.ts';
import { PACKAGES_PATH } from '../packages.ts';
import { referencePage } from '../reference-page.ts';
import { PLACEHOLDERS } from '../site.ts';

const { publicUrl, limit, windowSeconds } = PLACEHOLDERS;

/** A page in Markdown with placeholders. `name` is its menu entry. */
export interface Page {
  readonly path: string;
  readonly name: string;
  readonly markdown: string;
}

/** The pages below a heading of the menu. */
export interface PageGroup {
  readonly title: string;
  readonly pages: readonly Page[];
}

/** Returns every page, in the order of the menu. The manuals of clients and recipes come with the packages. */
export function writtenPages(release: PackageRelease): PageGroup[] {
  const values = pageValues(release);
  const page = (name: string, title: string): Page => ({
    path: `/docs${name === 'docs' ? '' : `/${name}`}`,
    name: title,
    markdown: fill(read('pages', name), values),
  });
  const manuals = manualTexts(release);
  const manual = (name: string, title: string): Page => ({
    path: `/docs/${name}`,
    name: title,
    markdown: fill(manuals.get(name) ?? '', { publicUrl }),
  });
  return [
    {
      title: 'Start',
      pages: [
        page('docs', 'Connect your website'),
        page('quick-start', 'Quick start'),
        page('clients', 'Clients'),
        page('inbox', 'Inbox'),
      ],
    },
    {
      title: 'Guides',
      pages: [
        page('outbox', 'Outbox'),
        page('retries', 'Retries'),
        page('limits', 'Limits'),
        page('keys', 'Keys'),
        page('packages', 'Packages'),
      ],
    },
    { title: 'Frameworks', pages: Object.entries(MANUALS).map(([name, title]) => manual(name, title)) },
    {
      title: 'Reference',
      pages: [
        { path: '/docs/reference', name: 'Reference', markdown: referencePage(publicUrl) },
        { path: '/docs/changelog', name: 'Changelog', markdown: changelog() },
      ],
    },
    {
      title: 'Problems',
      pages: [
        page('problems', 'All problems'),
        ...PROBLEM_CODES.map((code) => ({
          path: `/docs/problems/${code}`,
          name: code,
          markdown: problemPage(code),
        })),
      ],
    },
  ];
}

/** Pages that come with the packages: their path below `/docs`, and their menu entry. */
const MANUALS: Readonly<Record<string, string>> = {
  wordpress: 'WordPress',
  'recipes/nextjs': 'Next.js',
  'recipes/django': 'Django',
  'recipes/rails': 'Rails',
  'recipes/laravel': 'Laravel',
  'recipes/php-form': 'Plain PHP',
  typescript: 'TypeScript',
  python: 'Python',
  php: 'PHP',
};

const manualTexts = ({ packages }: PackageRelease) =>
  new Map<string, string>(
    packages.flatMap(({ kind, manual = '', pages = {} }) => [
      [kind === 'npm' ? 'typescript' : kind, manual] as const,
      ...Object.entries(pages).map(([name, text]) => [`recipes/${name}`, text] as const),
    ]),
  );

/**
 * Returns the index for programs (llmstxt.org): the summary, and the pages that the start page lists.
 *
 * @param first the start page
 */
export function indexForPrograms(first: string): string {
  const [, lists = ''] = /^(## [\s\S]+)/m.exec(first) ?? [];
  const { title, summary } = openApiInfo;
  return withAbsoluteLinks(`# ${title}

> ${summary}

Each page is also available as HTML, without \`.md\`.

All of them in one file: [llms-full.txt](/llms-full.txt).

${lists}`);
}

/** Makes the links of a page absolute, because readers of Markdown do not know its address. */
export const withAbsoluteLinks = (markdown: string, path = ''): string =>
  markdown
    // Removes parts that only a browser can show.
    .replaceAll(/^<\w+ \/>\n\n/gm, '')
    .replaceAll('](#', `](${path}#`)
    .replaceAll(
      /\]\((\/docs(?!\/try-it-out|\/assets)(?:\/[\w/-]+)?)(#[\w-]+)?\)/g,
      (_, page, anchor = '') => `](${publicUrl}${page}.md${anchor})`,
    )
    .replaceAll(/\]\((\/[\w./-]*)\)/g, `](${publicUrl}$1)`);

const fill = (markdown: string, values: Readonly<Record<string, string>>): string =>
  markdown.replace(/\{\{(\w+)\}\}/g, (placeholder, name) => values[name] ?? placeholder);

const read = (folder: string, name: string): string =>
  readFileSync(join(import.meta.dirname, '..', folder, `${name}.md`), 'utf8');

/** Returns the values that replace `{{name}}` on the pages. */
function pageValues(release: PackageRelease): Record<string, string> {
  const { npm, composer, pypi, licence } = PACKAGE_SETTINGS;
  const archives = archiveNames(PACKAGE_SETTINGS, release.version);
  const repository = `${publicUrl}${PACKAGES_PATH}`;
  const values = {
    publicUrl,
    limit,
    windowSeconds,
    npmName: npm,
    composerName: composer,
    pypiName: pypi,
    licence,
    npmAddress: `${repository}/${archives.npm}`,
    wheelAddress: `${repository}/${archives.python}`,
    protoAddress: `${repository}/${archives.proto}`,
    composerRepository: repository,
    problems: problemList(),
    packageList: packageList(release),
    ...Object.fromEntries(codeSamples(publicUrl, 'createLead').map(({ lang, source }) => [`${lang}Sample`, source])),
  };
  return { ...values, install: fill(read('parts', 'install').trim(), values) };
}

const problemList = (): string =>
  PROBLEM_CODES.map((code) => {
    const { status, title } = PROBLEMS[code];
    return `- ${status} [\`${code}\`](/docs/problems/${code})<br>${title}`;
  }).join('\n');

function problemPage(code: ProblemCode): string {
  const problem = toExample(code);
  const body = JSON.parse(problemBody(problem, REQUEST_ID, publicUrl));
  const headers = Object.entries({ 'content-type': PROBLEM_MEDIA_TYPE, ...problem.headers });
  return `\
# ${PROBLEMS[code].title}

\`${code}\`, status ${PROBLEMS[code].status}

${read('problems', code)}
## Example

\`\`\`http
HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}
${headers.map(([name, value]) => `${name}: ${value}`).join('\n')}

${JSON.stringify(body, null, 2)}
\`\`\`
`;
}

function packageList({ packages, checksums }: PackageRelease): string {
  const rows = packages.map(
    ({ kind, file, sbom, sha256 }) =>
      `| ${PACKAGE_TITLES[kind]} | [${file}](${PACKAGES_PATH}/${file}) | \`${sha256}\` | [CycloneDX](${PACKAGES_PATH}/${sbom}) |`,
  );
  return `| For | Archive | SHA-256 | Bill of materials |
|---|---|---|---|
${rows.join('\n')}

[${checksums}](${PACKAGES_PATH}/${checksums}) has the checksums for \`sha256sum --check --ignore-missing\`.`;
}

/** The sections of the changelog that concern websites. */
const READERS = /^Who (?:sends leads|generates clients)\n/;

/** Returns the changes for websites, by release. Removes links to the repository, which a deployment does not have. */
function changelog(): string {
  const text = readFileSync(join(import.meta.dirname, '../../../CHANGELOG.md'), 'utf8')
    .replaceAll(/\s\(\[[^\]]+\]\((?!https?:)[^)]+\)\)/g, '')
    .replaceAll(/\[([^\]]+)\]\((?!https?:)[^)]+\)/g, '$1');
  const releases = text.split(/^## /m).slice(1);
  const forWebsites = releases.flatMap((release) => {
    const [heading, ...sections] = release.split(/^### /m);
    const shown = sections.filter((section) => READERS.test(section)).map((section) => section.replace(READERS, ''));
    return shown.length > 0 ? `## ${heading?.split('\n', 1)}\n${shown.join('')}` : [];
  });
  return `# Changelog\n\nWhat changes for websites; \`/v1\` itself does not change.\n\n${forWebsites.join('')}`;
}
