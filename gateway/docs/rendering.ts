import GithubSlugger from 'github-slugger';
import { Marked, Renderer, type Token } from 'marked';

/** What a search finds: a heading of a page, and the text below it up to the next. */
export interface Section {
  /** The anchor of the heading; empty for the title of a page. */
  readonly id: string;
  readonly title: string;
  text: string;
}

/** The names of the languages of samples, by those of blocks; and of commands, by what the line above them begins with. */
const LANGUAGES: Readonly<Record<string, string>> = {
  js: 'TypeScript',
  javascript: 'TypeScript',
  php: 'PHP',
  python: 'Python',
  'For Node': 'TypeScript',
  'For PHP': 'PHP',
  'For Python': 'Python',
};

/** A line that only names the language of the sample or of the commands below it, for readers of Markdown. */
const LABEL = /^(?:In (?:JavaScript|TypeScript|PHP|Python)\b[^.:]*|(For (?:Node|PHP|Python)),.*):$/;

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
      if ((token.type === 'link' || token.type === 'image') && token.href.startsWith('/'))
        token.href = link(token.href);
    },
  });
  const parse = (token: Token) => {
    const html = marked.parse(token.raw, { async: false });
    const section = sections.at(-1);
    if (section && token.type !== 'heading') section.text += `${plain(html).replaceAll(/\s+/g, ' ').trim()} `;
    return html;
  };
  return {
    html: toBlocks(marked.lexer(markdown))
      .map((block) => renderBlock(block, parse))
      .join(''),
    sections,
  };
}

/** A part of a page, with the line that names its language; or samples of one thing in several languages. */
type Block = Part[];
type Part = { readonly label: Token | undefined; readonly token: Token };

function toBlocks(tokens: readonly Token[]): Block[] {
  const blocks: Block[] = [];
  let label: Token | undefined;
  for (const token of tokens.filter(({ type }) => type !== 'space')) {
    if (label === undefined && token.type === 'paragraph' && LABEL.test(token.raw.trim())) {
      label = token;
      continue;
    }
    const others = blocks.at(-1)?.map(findLanguage) ?? [undefined];
    const language = findLanguage({ label, token });
    const isAnother = language !== undefined && !others.includes(undefined) && !others.includes(language);
    if (isAnother) blocks.at(-1)?.push({ label, token });
    else blocks.push([{ label, token }]);
    label = undefined;
  }
  return label ? [...blocks, [{ label: undefined, token: label }]] : blocks;
}

const findLanguage = ({ label, token }: Part): string | undefined =>
  token.type === 'code' ? LANGUAGES[findCommands(label) ?? token.lang ?? ''] : undefined;

/** Returns how the line above commands begins. */
const findCommands = (label: Token | undefined): string | undefined => LABEL.exec(label?.raw.trim() ?? '')?.[1];

/** Samples are all shown; `site.js` makes tabs of them. A tab has the line above it if that says more than the language. */
function renderBlock(block: Block, parse: (token: Token) => string): string {
  const isAlone = block.length === 1;
  const each = block.map((part) => {
    const { label, token } = part;
    const saysMore = label && (isAlone || label.raw.includes('`') || findCommands(label));
    const html = (saysMore ? parse(label) : '') + parse(token);
    return isAlone ? html : `<figure><figcaption>${findLanguage(part)}</figcaption>\n${html}</figure>\n`;
  });
  return isAlone ? each.join('') : `<div class="samples">\n${each.join('')}</div>\n`;
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
