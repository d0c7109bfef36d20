import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Page, PageGroup } from './pages.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Menu groups by the folder of their pages. */
const GROUPS: Readonly<Record<string, string>> = {
  '.': 'The project',
  'docs/tutorial': 'Tutorial of the project',
  'docs/how-to': 'How to operate and connect',
  'docs/reference': 'Reference of the project',
  'docs/explanation': 'Explanation',
};

/** The folder of the pictures on these pages. */
export const PICTURES = join(ROOT, 'docs/explanation/pictures');

/** Returns the pages for operators, authors of a CRM, and developers of this project. Gateways do not serve them. */
export function projectPages(): PageGroup[] {
  const files = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT }).toSorted();
  return Object.entries(GROUPS).map(([folder, title]) => ({
    title,
    pages: files.filter((file) => toFolder(file) === folder).map((file) => projectPage(file, files)),
  }));
}

/** Returns the folder of a page. The index of the docs belongs to the project. */
const toFolder = (file: string): string => (dirname(file) === 'docs' ? '.' : dirname(file));

const toPath = (file: string): string => `/docs/project/${file.replace(/\.md$/, '').toLowerCase()}`;

/** Returns a file as a page. A link to a file that is not a page becomes its text. */
function projectPage(file: string, files: readonly string[]): Page {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const markdown = source
    .replaceAll('](pictures/', '](/docs/pictures/')
    .replaceAll(/\[([^\]]+)\]\((?!https?:|[#/])([^)#]+)(#[\w-]+)?\)/g, (_, text, target, anchor = '') => {
      const linked = join(dirname(file), target);
      return files.includes(linked) ? `[${text}](${toPath(linked)}${anchor})` : text;
    });
  return { path: toPath(file), name: /^# (.+)$/m.exec(source)?.[1] ?? file, markdown };
}
