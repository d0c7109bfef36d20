import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import apiReference from '@scalar/fastify-api-reference';
import fastify from 'fastify';
import { PACKAGES_FOLDER, type PackageRelease } from '../../../common/package-settings.ts';
import packageJson from '../../../package.json' with { type: 'json' };
import { PLACEHOLDERS } from '../site.ts';
import { indexForPrograms, type Page, type PageGroup, withAbsoluteLinks, writtenPages } from './pages.ts';

/** The folder of the generator's configuration. */
export const DOCS = join(import.meta.dirname, '..');

/** Where the generator reads the pages. Its configuration repeats this path. */
const SOURCES = join(DOCS, '../../.generated/docs');

/** Builds the pages of `/docs`. Replaces the folder once they are complete. */
export async function buildSite(folder: string): Promise<void> {
  await writeSources();
  const next = `${folder}.${process.pid}`;
  // Otherwise Vue writes paths of this machine into the site. It reads this when it is loaded.
  process.env.NODE_ENV = 'production';
  const { build } = await import('vitepress');
  await build(DOCS, { outDir: next });
  const former = `${next}.former`;
  if (existsSync(folder)) renameSync(folder, former);
  renameSync(next, folder);
  rmSync(former, { recursive: true, force: true });
}

/**
 * Writes the generator's input.
 *
 * @param more further pages, below the others in the menu
 * @param pictures the folder of the pictures on these pages
 * @param fill replaces the placeholders, unless a gateway will
 */
export async function writeSources(
  more: readonly PageGroup[] = [],
  pictures?: string,
  fill: (text: string) => string = String,
): Promise<void> {
  const release: PackageRelease = JSON.parse(
    readFileSync(join(PACKAGES_FOLDER, `release-${packageJson.version}.json`), 'utf8'),
  );
  const served = writtenPages(release);
  const groups = [...served, ...more];
  const pages = served.flatMap((group) => group.pages);
  rmSync(SOURCES, { recursive: true, force: true });
  cpSync(join(DOCS, 'assets'), join(SOURCES, 'public/assets'), { recursive: true });
  cpSync(join(DOCS, 'try-it-out.html'), join(SOURCES, 'public/try-it-out.html'));
  if (pictures) cpSync(pictures, join(SOURCES, 'public/pictures'), { recursive: true });
  await addReference(join(SOURCES, 'public/assets'));
  for (const page of groups.flatMap((group) => group.pages)) write(`${toFile(page.path)}.md`, fill(forReaders(page)));
  for (const { path, markdown } of pages) write(`public/${toFile(path)}.md`, withAbsoluteLinks(markdown, path));
  write('public/llms.txt', indexForPrograms(pages[0]?.markdown ?? ''));
  write('public/llms-full.txt', pages.map(({ path, markdown }) => withAbsoluteLinks(markdown, path)).join('\n'));
  const sidebar = groups.map(({ title, pages }) => ({
    text: title,
    items: [
      ...pages.map(({ path, name }) => ({ text: name, link: inSite(path) })),
      // A separate document, because its script needs another Content-Security-Policy.
      ...(title === 'Reference' ? [{ text: 'Try it out', link: '/try-it-out', target: '_self' }] : []),
    ],
  }));
  write('sidebar.json', JSON.stringify(sidebar));
}

function write(name: string, text: string): void {
  mkdirSync(dirname(join(SOURCES, name)), { recursive: true });
  writeFileSync(join(SOURCES, name), text);
}

/** Returns the path of a page within the site. */
function inSite(path: string): string {
  return path.slice('/docs'.length) || '/';
}

function toFile(path: string): string {
  return inSite(path).slice(1) || 'index';
}

/** Returns a page for the generator: links begin below `/docs`, and samples in several languages become tabs. */
function forReaders({ path, markdown }: Page): string {
  const text = markdown
    .replaceAll(
      /\]\(\/docs\/(try-it-out|packages\/[\w.+-]+)\)/g,
      `](${PLACEHOLDERS.publicPath}/docs/$1){target="_self"}`,
    )
    .replaceAll(/\]\(\/((?:v1\/|llms)[\w.-]+)\)/g, `](${PLACEHOLDERS.publicUrl}/$1)`)
    .replaceAll(/\]\(\/docs(?=[)#])/g, '](/')
    .replaceAll('](/docs/', '](/')
    .replaceAll(
      SAMPLES,
      (samples) => `::: code-group\n\n${samples.replaceAll(SAMPLE, '```$2 [$1]\n$3```\n\n')}:::\n\n`,
    );
  return path === '/docs' ? startPage(text) : text;
}

const SAMPLE = /^(?:In|For) (TypeScript|PHP|Python):\n\n```(\w+)\n([\s\S]*?)^```\n\n?/gm;

const SAMPLES = new RegExp(`(?:${SAMPLE.source}){2,}`, 'gm');

/** Returns the start page, with its title and first paragraph beside the picture of the outbox. */
function startPage(markdown: string): string {
  const [, title, lead, rest] = /^# (.+)\n\n(.+)\n\n([\s\S]+)/.exec(markdown) ?? [];
  const hero = {
    name: 'Lead Intake API',
    text: title,
    tagline: lead,
    image: { src: '/assets/outbox.svg', alt: 'The way of a lead through an outbox' },
    actions: [
      { text: 'Quick start', link: '/quick-start' },
      { text: 'Reference', link: '/reference', theme: 'alt' },
    ],
  };
  return `---\n${JSON.stringify({ layout: 'home', title, search: false, hero })}\n---\n\n${rest}`;
}

/** Extracts the script of the reference. Its package offers it only through a Fastify plugin, so the plugin runs once. */
async function addReference(folder: string): Promise<void> {
  const app = fastify();
  app.register(apiReference, { routePrefix: '/docs', configuration: { url: '/v1/openapi.json' } });
  const { statusCode, rawPayload: script } = await app.inject('/docs/js/scalar.js');
  await app.close();
  if (statusCode !== 200)
    throw new Error(`extracting the reference script failed: the plugin returned status ${statusCode}`);
  writeFileSync(join(folder, 'scalar.js'), script);
  writeFileSync(join(folder, 'scalar.js.gz'), gzipSync(script, { level: 9 }));
}
