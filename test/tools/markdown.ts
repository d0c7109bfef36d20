import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import GithubSlugger from 'github-slugger';
import { type MarkedToken, marked, type Token, type Tokens } from 'marked';
import { ROOT } from './processes.ts';

/** A fenced block of shell commands. */
export interface CommandBlock {
  /** The marker comment above the block, or its first line if there is none. */
  readonly name: string;
  readonly commands: string;
}

/** The parts of a Markdown page that tests check. */
export interface MarkdownPage {
  /** Relative to the repository's root. */
  readonly path: string;
  /** The targets of links and images. */
  readonly links: readonly string[];
  /** The names with which links can point to a heading. */
  readonly anchors: ReadonlySet<string>;
  readonly blocks: readonly CommandBlock[];
}

const SHELLS = ['sh', 'bash', 'shell', 'console', 'zsh'];

/** Every Markdown page of the repository. */
export const MARKDOWN_PAGES: readonly MarkdownPage[] = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'],
  { cwd: ROOT, encoding: 'utf8' },
)
  .trim()
  .split('\n')
  .map(readPage);

function readPage(path: string): MarkdownPage {
  const tokens = marked.lexer(readFileSync(join(ROOT, path), 'utf8'));
  const links: string[] = [];
  const titles: string[] = [];
  const blocks: CommandBlock[] = [];
  let comment: string | undefined;
  marked.walkTokens(tokens, (token) => {
    const each = token as MarkedToken;
    if (each.type === 'link' || each.type === 'image') links.push(each.href);
    if (each.type === 'heading') titles.push(plainText(each.tokens));
    if (each.type === 'code' && SHELLS.includes(each.lang ?? '')) {
      const [firstLine = ''] = each.text.split('\n');
      blocks.push({ name: comment ?? firstLine, commands: each.text });
    }
    if (each.type !== 'space') comment = each.type === 'html' ? /^<!-- (\S+) -->/.exec(each.text)?.[1] : undefined;
  });
  const slugger = new GithubSlugger();
  return { path, links, anchors: new Set(titles.map((title) => slugger.slug(title))), blocks };
}

/** Returns the text of inline tokens without their markup. */
function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) => ('tokens' in token && token.tokens ? plainText(token.tokens) : (token as Tokens.Text).text))
    .join('');
}
