import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';

/** Another process that can lock a database file. */
export interface LockHolder {
  /** Takes the write lock with this statement, and resolves once it has it. */
  lock(statement?: 'BEGIN IMMEDIATE' | 'BEGIN EXCLUSIVE'): Promise<void>;
  unlock(): Promise<void>;
}

const SCRIPT = `
  import { createInterface } from 'node:readline';
  import { DatabaseSync } from 'node:sqlite';
  const database = new DatabaseSync(process.argv[1], { timeout: 10_000 });
  for await (const statement of createInterface(process.stdin)) {
    database.exec(statement);
    console.log('done');
  }`;

/** Starts a process that locks a database file on request. It ends with the test. */
export function lockHolder(path: string): LockHolder {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', SCRIPT, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout);
  onTestFinished(async () => {
    const exit = once(child, 'exit');
    child.stdin.end();
    await exit;
  });
  const run = async (statement: string) => {
    const done = once(lines, 'line');
    child.stdin.write(`${statement}\n`);
    await done;
  };
  return { lock: (statement = 'BEGIN IMMEDIATE') => run(statement), unlock: () => run('ROLLBACK') };
}
