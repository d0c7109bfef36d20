import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Lang, parse } from '@ast-grep/napi';
import { analyse } from 'scslre';
import { expect, test } from 'vitest';
import { ROOT } from '../tools/processes.ts';

/** Expressions whose time grows faster than their input. Each has an input that is short or trusted. */
const BOUNDED: Readonly<Record<string, string>> = {
  'common/settings.ts: /\\/+$/': 'an address that the operator sets',
  'sdk/configuration.ts: /\\/+$/': 'an address that the website sets',
  'gateway/docs/generator/pages.ts: /\\[([^\\]]+)\\]\\((?!https?:)[^)]+\\)/g': 'our own pages, before a gateway starts',
  'gateway/docs/generator/project-pages.ts: /\\[([^\\]]+)\\]\\((?!https?:|[#/])([^)#]+)(#[\\w-]+)?\\)/g':
    'our own pages, for readers of this project',
  ...Object.fromEntries(
    [
      '/\\[([^\\]]+)\\]\\((?!https?:|#)[^)]+\\)/g',
      '/\\[([^\\]]+)\\]\\((?:\\.\\.\\/)+gateway\\/docs\\/pages\\/([\\w-]+)\\.md(#[\\w-]+)?\\)/g',
      '/\\[([^\\]]+)\\]\\((?!https?:|#)([^)#]+)(#[\\w-]+)?\\)/g',
      '/^([\\w.-]+)(.*)$/',
    ].map((expression) => [`sdk/packages/sources.ts: ${expression}`, 'our own pages, when packages are built']),
  ),
  ...Object.fromEntries(
    [
      '/^(?<before>(?:[^\\d#;]*\\d){7,}?)[^\\d#;]*?(?:(?:#|;|,{2,})(?<after>(?:\\D*\\d){1,6})|[^\\d#;](?<inside>\\d{1,6})#)\\D*$/su',
      '/\\+\\P{L}*\\d|\\d/u',
      '/^(\\P{L}*)(.*)$/su',
      '/^(?<name>[\\p{L}\\p{M}]+)[^\\p{L}\\d]*(?<digits>\\d[\\d-]{0,9})(?!\\d)/u',
    ].map((expression) => [`src/domain/phone-number.ts: ${expression}`, 'a phone number of at most 64 characters']),
  ),
};

// Senders' text reaches many expressions, some before the request has a key. If one starts again at each character of a
// run, 64 KiB hold the process for seconds.
test('no regular expression of the product takes more than linear time', () => {
  const found = sources().flatMap((path) =>
    expressionsIn(path)
      .filter(isSlow)
      .map((text) => `${path}: ${text}`),
  );
  expect(found.toSorted()).toEqual(Object.keys(BOUNDED).toSorted());
});

test('an expression that starts again at each character of a run counts as slow', () => {
  expect(['/x+$/', '/[a-z]+ HTTP/', '/^(a+)+$/', '/^x+$/', '/ HTTP/'].filter(isSlow)).toEqual([
    '/x+$/',
    '/[a-z]+ HTTP/',
    '/^(a+)+$/',
  ]);
});

const sources = (): string[] =>
  execFileSync(
    'git',
    ['ls-files', 'common/*.ts', 'src/*.ts', 'gateway/*.ts', 'operator/*.ts', 'sdk/*.ts', 'start.ts'],
    {
      cwd: ROOT,
      encoding: 'utf8',
    },
  )
    .split('\n')
    .filter((path) => path !== '' && !/^sdk\/(?:conformance|test)\//.test(path));

const expressionsIn = (path: string): string[] =>
  parse(Lang.TypeScript, readFileSync(join(ROOT, path), 'utf8'))
    .root()
    .findAll({ rule: { kind: 'regex' } })
    .map((node) => node.text());

function isSlow(text: string): boolean {
  const [, source = '', flags = ''] = /^\/(.*)\/([a-z]*)$/s.exec(text) ?? [];
  return analyse({ source, flags }).reports.length > 0;
}
