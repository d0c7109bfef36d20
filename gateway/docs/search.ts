import { type DocsPage, escapeHtml, isHtml, MAX_QUERY } from './pages.ts';

interface Section {
  /** The page relative to `/docs/`, with the anchor of the heading. */
  readonly address: string;
  readonly title: string;
  readonly text: string;
  /** In lower case, once: a query must not convert all pages once for each of its words. */
  readonly lowerTitle: string;
  /** The title, too. */
  readonly lowerText: string;
}

const MAX_RESULTS = 20;

/** How much of a section is shown around the first word found; characters before and after. */
const EXCERPT = 90;

/**
 * Returns a search over pages.
 *
 * @returns a function from a query to a list in HTML of the sections that have all of its words, in any letter case
 */
export function searchIn(pages: readonly DocsPage[]): (query: string) => string {
  const sections = pages.filter(isHtml).flatMap(sectionsOf);
  return (query) => {
    const words = query.slice(0, MAX_QUERY).toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return '';
    const has = (lower: string) => words.every((word) => lower.includes(word));
    const found = sections.filter(({ lowerText }) => has(lowerText));
    const best = found.toSorted((a, b) => Number(has(b.lowerTitle)) - Number(has(a.lowerTitle))).slice(0, MAX_RESULTS);
    const items = best.map(
      (section) =>
        `<li><a href="${section.address}">${escapeHtml(section.title)}</a><br>${excerptOf(section, words)}</li>`,
    );
    return items.length > 0 ? `<ul>\n${items.join('\n')}\n</ul>` : '<p>No page has all of these words.</p>';
  };
}

function sectionsOf({ path, text }: DocsPage): Section[] {
  const [, content = ''] = text.split('<main class="page">');
  const [, pageTitle = ''] = /<h1[^>]*>(.*?)<\/h1>/.exec(content) ?? [];
  return [...content.matchAll(/<h([1-3]) id="([^"]*)">(.*?)<\/h\1>([\s\S]*?)(?=<h[1-3] |$)/g)].map(
    ([, level, id, heading = '', body = '']) => {
      const title = shown(level === '1' ? heading : `${pageTitle}: ${heading}`);
      const text = shown(body);
      return {
        address: `${path.slice('/docs/'.length)}${level === '1' ? '' : `#${id}`}`,
        title,
        text,
        lowerTitle: title.toLowerCase(),
        lowerText: `${title} ${text}`.toLowerCase(),
      };
    },
  );
}

function excerptOf({ text }: Section, words: readonly string[]): string {
  const at = Math.max(0, ...words.map((word) => text.toLowerCase().indexOf(word)));
  const start = Math.max(0, at - EXCERPT);
  const excerpt = text.slice(start, at + EXCERPT).toWellFormed();
  return escapeHtml(`${start > 0 ? '…' : ''}${excerpt}${at + EXCERPT < text.length ? '…' : ''}`);
}

const CHARACTERS: Readonly<Record<string, string>> = { quot: '"', lt: '<', gt: '>', amp: '&', '#39': "'" };

/** Returns the text of HTML as a browser shows it. */
const shown = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(\w+|#39);/g, (entity, name) => CHARACTERS[name] ?? entity)
    .replaceAll(/\s+/g, ' ')
    .trim();
