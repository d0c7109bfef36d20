import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';

test('a core starts on an empty file and logs no warning', async () => {
  const path = join(temporaryFolder(), 'leads.db');
  writeFileSync(path, '');
  const core = run('src/main.ts', { env: { DATABASE_URL: `sqlite:${path}` } });
  await readAddress(core);
  expect(core.output()).toMatch(
    /"level":30,.*"msg":"a new database was created: there was no such file, or an empty one"/,
  );
});

describe('an unusable database file', () => {
  test.each([
    ['the core', 'src/main.ts', []],
    ['the command line', 'operator/cli.ts', ['studios', 'get', 'demo']],
    ['npm start', 'start.ts', []],
  ])('%s reports an unusable database file in a line with advice and ends with status 1', async (_who, file, args) => {
    const path = temporaryFolder();

    const running = run(file, { args, env: { DATABASE_URL: `sqlite:${path}` } });

    expect(await running.ended()).toBe(1);
    expect(running.output()).toContain(`the database file ${path} is a folder: name a file, which may be in it`);
    expect(running.output()).not.toMatch(/^ {4}at /m);
  });

  test('a command leaves a file of another application unchanged', async () => {
    const path = join(temporaryFolder(), 'shop.db');
    const shop = new DatabaseSync(path);
    shop.exec('CREATE TABLE orders (id INTEGER)');
    shop.close();
    const before = readFileSync(path);

    const running = run('operator/cli.ts', { args: ['vacuum'], env: { DATABASE_URL: `sqlite:${path}` } });

    expect(await running.ended()).toBe(1);
    expect(running.output()).toBe(`the database file ${path} belongs to another program: name a file of its own\n`);
    expect(readFileSync(path)).toEqual(before);
  });
});
