import { readFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import { basename, join } from 'node:path';
import GithubSlugger from 'github-slugger';
import { Marked, Renderer } from 'marked';
import { PROBLEM_CODES, PROBLEM_MEDIA_TYPE, PROBLEMS, type ProblemCode, problemBody } from '../problems.ts';
import { exampleOf, REQUEST_ID } from './examples.ts';
import { layout, MENU, relativeFrom } from './layout.ts';
import { openApiInfo } from './openapi.ts';

/** A page in Markdown and in HTML. */
interface WrittenPage {
  readonly path: string;
  readonly markdown: string;
  readonly html: string;
}

/** Renders `pages/`, and `problems/` for each code. Values of a running service stay `{{name}}`. */
export function renderPages(): WrittenPage[] {
  const written = MENU.filter(([path]) => path !== '/docs').map(([path]) =>
    renderPage(path, read('pages', basename(path)).replace('{{problems}}', problemList)),
  );
  return [...written, ...PROBLEM_CODES.map((code) => renderPage(`/docs/problems/${code}`, problemPage(code)))];
}

function problemList(): string {
  return PROBLEM_CODES.map((code) => {
    const { status, title } = PROBLEMS[code];
    return `- ${status} [\`${code}\`](/docs/problems/${code})<br>${title}`;
  }).join('\n');
}

function problemPage(code: ProblemCode): string {
  const problem = exampleOf(code);
  const body = JSON.parse(problemBody(problem, REQUEST_ID, '{{publicUrl}}'));
  const headers = { 'content-type': PROBLEM_MEDIA_TYPE, ...problem.headers };
  return `\
# ${PROBLEMS[code].title}

\`${code}\`, status ${PROBLEMS[code].status}

${read('problems', code)}
## Example

\`\`\`http
HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}
${Object.entries(headers)
  .map(([name, value]) => `${name}: ${value}`)
  .join('\n')}

${JSON.stringify(body, null, 2)}
\`\`\`
`;
}

/** Makes links absolute, because readers of Markdown have it without its address. */
const withAbsoluteLinks = (markdown: string): string =>
  markdown
    .replaceAll(/\]\((\/docs\/[\w/-]+)\)/g, ']({{publicUrl}}$1.md)')
    .replaceAll(/\]\((\/[\w./-]*)\)/g, ']({{publicUrl}}$1)');

/** Returns the index for programs (llmstxt.org): the summary, and the pages that the quick start lists. */
export function indexForPrograms(): string {
  const [, next = ''] = /^## Next\n([\s\S]+)/m.exec(read('pages', 'quick-start')) ?? [];
  const { title, summary } = openApiInfo;
  return withAbsoluteLinks(`# ${title}

> ${summary}

Each page is also available as HTML, without \`.md\`.

## Pages

- [Quick start](/docs/quick-start): get a key, create a first lead, and read leads.
${next.trim()}
`);
}

function renderPage(path: string, markdown: string): WrittenPage {
  const link = relativeFrom(path);
  const slugger = new GithubSlugger();
  const marked = new Marked({
    renderer: {
      heading({ depth, tokens }) {
        const text = this.parser.parseInline(tokens);
        return `<h${depth} id="${slugger.slug(text.replaceAll(/<[^>]*>/g, ''))}">${text}</h${depth}>\n`;
      },
      table(token) {
        return `<div class="table">\n${Renderer.prototype.table.call(this, token)}</div>\n`;
      },
    },
    walkTokens(token) {
      if (token.type === 'link' && token.href.startsWith('/')) token.href = link(token.href);
    },
  });
  const [, title = ''] = /^# (.+)$/m.exec(markdown) ?? [];
  const body = `<main class="page">\n${marked.parse(markdown)}</main>`;
  const html = layout({ path, title, body, markdown: `${path}.md` });
  return { path, markdown: withAbsoluteLinks(markdown), html };
}

function read(folder: string, name: string): string {
  return readFileSync(join(import.meta.dirname, folder, `${name}.md`), 'utf8');
}
