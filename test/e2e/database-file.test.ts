import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { run, temporaryFolder } from '../support/processes.ts';

/** A user without rights, on every system. */
const OTHER_USER = 65_534;

/** The command `studios get demo`. Root, who may open every file, becomes another user once all of its code is loaded. */
const AS_ORDINARY_USER = `
import { addDirectoryCommands } from '${new URL('../../operator/commands/directory-commands.ts', import.meta.url)}';
import { program } from '${new URL('../../operator/commands/program.ts', import.meta.url)}';
addDirectoryCommands();
if (process.getuid() === 0) {
  process.setgroups([]);
  process.setgid(${OTHER_USER});
  process.setuid(${OTHER_USER});
}
await program.parseAsync(['studios', 'get', 'demo'], { from: 'user' });
`;

describe('an unusable database file is reported in one line, with what to do, and status 1', () => {
  test.each([
    ['the core', 'src/main.ts', []],
    ['the command line', 'operator/cli.ts', ['studios', 'get', 'demo']],
    ['npm start', 'start.ts', []],
  ])('by %s', async (_who, file, args) => {
    const path = temporaryFolder();

    const running = run(file, { args, env: { DATABASE_URL: `sqlite:${path}` } });

    expect(await running.ended()).toBe(1);
    expect(running.output()).toContain(`the database file ${path} is a folder: name a file, which may be in it`);
    expect(running.output()).not.toMatch(/^ {4}at /m);
  });

  test.each([[['studios', 'put', 'demo']], [['vacuum']]])(
    'a file of another application stays unchanged: %j',
    async (args) => {
      const path = join(temporaryFolder(), 'shop.db');
      const shop = new DatabaseSync(path);
      shop.exec('CREATE TABLE orders (id INTEGER)');
      shop.close();
      const before = readFileSync(path);

      const running = run('operator/cli.ts', { args, env: { DATABASE_URL: `sqlite:${path}` } });

      expect(await running.ended()).toBe(1);
      expect(running.output()).toBe(`the database file ${path} belongs to another program: name a file of its own\n`);
      expect(readFileSync(path)).toEqual(before);
    },
  );

  test('when the user may not write its folder', async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'data'), { mode: 0o555 });
    const path = join(folder, 'data', 'leads.db');
    const script = join(folder, 'command.mts');
    writeFileSync(script, AS_ORDINARY_USER);

    const running = run(script, { env: { DATABASE_URL: `sqlite:${path}` } });

    expect(await running.ended()).toBe(1);
    expect(running.output()).toContain(`the database file ${path} may not be opened by this user: give them the file`);
  });
});
