import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openSite, PLACEHOLDERS } from '../../gateway/docs/site.ts';
import { temporaryFolder } from '../tools/processes.ts';

const VALUES = { publicUrl: 'https://leads.example.test/some/prefix', limit: 600, windowSeconds: 60 };

test("a page of the built site has the gateway's values instead of its placeholders", () => {
  const folder = temporaryFolder();
  const { publicUrl, publicPath, limit, windowSeconds } = PLACEHOLDERS;
  writeFileSync(
    join(folder, 'limits.html'),
    `<a href="${publicPath}/docs/">${publicUrl}</a> ${limit} ${windowSeconds}`,
  );
  const file = openSite(VALUES, folder).load('limits.html');
  expect(`${file?.content}`).toBe(`<a href="/some/prefix/docs/">${VALUES.publicUrl}</a> 600 60`);
});

test('each site file has a path below /docs, pages have no extension, and texts are at the root', () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'problems'));
  for (const name of [
    'index.html',
    'index.md',
    '404.html',
    'problems/a.html',
    'problems/a.md',
    'b.js',
    'b.js.gz',
    'llms.txt',
  ])
    writeFileSync(join(folder, name), '');
  expect(Object.fromEntries([...openSite(VALUES, folder).paths])).toEqual({
    '/docs': 'index.html',
    '/docs/': 'index.html',
    '/docs.md': 'index.md',
    '/docs/problems/a': 'problems/a.html',
    '/docs/problems/a.md': 'problems/a.md',
    '/docs/b.js': 'b.js',
    '/llms.txt': 'llms.txt',
  });
});

test('a site file removed after opening is missing, but one that was read before stays', () => {
  const folder = temporaryFolder();
  for (const name of ['a.html', 'b.html']) writeFileSync(join(folder, name), name);
  const site = openSite(VALUES, folder);
  site.load('a.html');
  for (const name of ['a.html', 'b.html']) rmSync(join(folder, name));
  expect(`${site.load('a.html')?.content}`).toBe('a.html');
  expect(site.load('b.html')).toBeUndefined();
});

test('a site that was not built has no pages', () => {
  expect(openSite(VALUES, join(temporaryFolder(), 'none')).paths.size).toBe(0);
});
