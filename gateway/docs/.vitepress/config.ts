import { readFileSync } from 'node:fs';
import GithubSlugger from 'github-slugger';
import { createCssVariablesTheme } from 'shiki';
import { defineConfig } from 'vitepress';
import { PLACEHOLDERS } from '../site.ts';

/** The path of the site. `npm run docs` sets its own, because it needs no placeholder. */
const BASE = process.env.DOCS_BASE ?? `${PLACEHOLDERS.publicPath}/docs/`;

const SOURCES = '../../.generated/docs';

/** Search words of readers, by the words on the pages. */
const SYNONYMS: Readonly<Record<string, string>> = {
  captcha: 'spam honeypot',
  erase: 'delete gdpr privacy',
  'Next.js': 'nextjs react',
  Node: 'express',
  'to try out': 'sandbox',
  TypeScript: 'javascript',
  WordPress: 'wp',
};

/** Returns a page for the search, with the status and code of a problem in its title, so that they find it first. */
const withStatusInTitle = (source: string): string =>
  source.replace(/^# (.+)\n\n`(\w+)`, status (\d+)/, (_, title, code, status) => {
    return `# ${status} ${code} {#${new GithubSlugger().slug(title)}}\n\n${title}`;
  });

const withSynonyms = (html: string): string =>
  html.replaceAll(/<(p|li)>[\s\S]*?<\/\1>/g, (text) => {
    const found = Object.keys(SYNONYMS).filter((word) => text.includes(word));
    return text + found.map((word) => `<p>${SYNONYMS[word]}</p>`).join('');
  });

export default defineConfig({
  title: 'Lead Intake API',
  description: 'Sends sales leads into one studio of a CRM and reads them back.',
  head: [['link', { rel: 'icon', href: `${BASE}assets/icon.svg` }]],
  base: BASE,
  srcDir: SOURCES,
  cacheDir: '../../.generated/docs-cache',
  srcExclude: ['public/**'],
  cleanUrls: true,
  // Pages are indexed in the order in which they are read. So they are read one at a time, and two builds are identical.
  buildConcurrency: 1,
  metaChunk: true,
  markdown: {
    languageAlias: { mjs: 'js', ru: 'ruby', rake: 'ruby', svg: 'xml' },
    // Code colours are classes: the Content-Security-Policy of a page forbids inline styles.
    theme: createCssVariablesTheme({ name: 'classes', variablePrefix: '--code-' }),
    // By default, a line that takes half a second remains without colour, so that a busy machine would build other bytes.
    codeTransformers: [{ preprocess: (_code, options) => void Object.assign(options, { tokenizeTimeLimit: 0 }) }],
    anchor: { slugify: (text) => new GithubSlugger().slug(text) },
    config(md) {
      const { highlight } = md.options;
      md.options.highlight = (...parameters) =>
        highlight?.(...parameters).replaceAll(
          / style="[^"]*?color:var\(--code-([\w-]+)\)[^"]*"/g,
          ' class="code-$1"',
        ) ?? '';
      // Replaces the random ids of tabs, by which two builds of one release would differ.
      const { 'container_code-group_open': openGroup } = md.renderer.rules;
      md.renderer.rules['container_code-group_open'] = (tokens, index, ...parameters) => {
        const ids: string[] = [];
        return `${openGroup?.(tokens, index, ...parameters)}`.replaceAll(/\b(?:group|tab)-[\w-]+(?=")/g, (id) => {
          if (!ids.includes(id)) ids.push(id);
          return `tab-${index}-${ids.indexOf(id)}`;
        });
      };
    },
  },
  // The other headings of recipes are names of files, which are too long for the margin.
  transformPageData: ({ relativePath }) =>
    relativePath.startsWith('recipes/') ? { frontmatter: { outline: 2 } } : undefined,
  transformHtml: (html) => html.replaceAll(/ style="(?:--vp-vh:0px;|position:relative;|)"/g, ''),
  themeConfig: {
    nav: [
      { text: 'Quick start', link: '/quick-start' },
      { text: 'Outbox', link: '/outbox' },
      { text: 'Inbox', link: '/inbox' },
      { text: 'Reference', link: '/reference' },
    ],
    sidebar: JSON.parse(readFileSync(new URL(`${SOURCES}/sidebar.json`, new URL('..', import.meta.url)), 'utf8')),
    outline: [2, 3],
    notFound: {
      title: 'There is no such page',
      quote: 'The search and the start page lead to all pages.',
      linkText: 'Start',
    },
    search: {
      provider: 'local',
      options: {
        translations: { button: { buttonText: 'Search', buttonAriaLabel: 'Search' } },
        miniSearch: { searchOptions: { fuzzy: 0.1 } },
        _render: (source, env, md) => {
          const html = md.render(withStatusInTitle(source), env);
          return env.frontmatter?.search === false ? '' : withSynonyms(html);
        },
      },
    },
  },
});
