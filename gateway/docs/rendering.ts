import GithubSlugger from 'github-slugger';
import { Marked, Renderer, type Token } from 'marked';

/** What a search finds: a heading of a page, and the text below it up to the next. */
export interface Section {
  /** The anchor of the heading; empty for the title of a page. */
  readonly id: string;
  readonly title: string;
  text: string;
}

/** The names of the languages of samples. */
const LANGUAGES: Readonly<Record<string, string>> = {
  js: 'TypeScript',
  javascript: 'TypeScript',
  php: 'PHP',
  python: 'Python',
};

/** A line that only names the language of the sample below it, for readers of Markdown. */
const LABEL = /^In (?:JavaScript|TypeScript|PHP|Python)\b[^.:]*:$/;

/**
 * Renders a page in Markdown.
 *
 * @param link makes a path of this service relative to that of the page
 */
export function render(markdown: string, link: (path: string) => string): { html: string; sections: Section[] } {
  const slugger = new GithubSlugger();
  const sections: Section[] = [];
  const marked = new Marked({
    renderer: {
      heading({ depth, tokens }) {
        const text = this.parser.parseInline(tokens);
        const title = plain(text);
        const id = slugger.slug(title);
        sections.push({ id: depth === 1 ? '' : id, title, text: '' });
        const anchor = depth === 1 ? '' : `<a class="anchor" href="#${id}" aria-label="Link to this section"></a>`;
        return `<h${depth} id="${id}">${text}${anchor}</h${depth}>\n`;
      },
      table(token) {
        // What scrolls can be reached by keyboard.
        return `<div class="table" tabindex="0">\n${Renderer.prototype.table.call(this, token)}</div>\n`;
      },
    },
    walkTokens(token) {
      if (token.type === 'link' && token.href.startsWith('/')) token.href = link(token.href);
    },
  });
  const parse = (token: Token) => {
    const html = marked.parse(token.raw, { async: false });
    const section = sections.at(-1);
    if (section && token.type !== 'heading') section.text += `${plain(html).replaceAll(/\s+/g, ' ').trim()} `;
    return html;
  };
  return {
    html: blocksOf(marked.lexer(markdown))
      .map((block) => htmlOf(block, parse))
      .join(''),
    sections,
  };
}

/** A part of a page, or samples of one thing in several languages, with the line above the first. */
interface Block {
  readonly label: Token | undefined;
  readonly tokens: Token[];
}

function blocksOf(tokens: readonly Token[]): Block[] {
  const blocks: Block[] = [];
  let label: Token | undefined;
  for (const token of tokens.filter(({ type }) => type !== 'space')) {
    if (token.type === 'paragraph' && LABEL.test(token.raw.trim())) {
      label = token;
      continue;
    }
    const others = blocks.at(-1)?.tokens.map(languageOf) ?? [undefined];
    const language = languageOf(token);
    if (language !== undefined && !others.includes(undefined) && !others.includes(language))
      blocks.at(-1)?.tokens.push(token);
    else blocks.push({ label, tokens: [token] });
    label = undefined;
  }
  return label ? [...blocks, { label: undefined, tokens: [label] }] : blocks;
}

const languageOf = (token: Token): string | undefined =>
  token.type === 'code' ? LANGUAGES[token.lang ?? ''] : undefined;

/** Samples are all shown; `site.js` makes tabs of them. */
function htmlOf({ label, tokens }: Block, parse: (token: Token) => string): string {
  const [first, ...others] = tokens;
  if (first && others.length === 0) return (label ? parse(label) : '') + parse(first);
  const samples = tokens.map(
    (token) => `<figure><figcaption>${languageOf(token)}</figcaption>\n${parse(token)}</figure>\n`,
  );
  return `<div class="samples">\n${samples.join('')}</div>\n`;
}

const CHARACTERS: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
};

/** The text of HTML that marked wrote. */
const plain = (html: string): string =>
  html.replaceAll(/<[^>]*>/g, '').replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (name) => CHARACTERS[name] ?? '');
