import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { SlowCommands } from '../port/listeners.ts';

/** Reports the slow statements of a database: those prepared from now on, and transactions. */
export function reportSlowStatements(database: DatabaseSync, { fromMs, report }: SlowCommands): void {
  const ended = (sql: string, began: number): void => {
    const durationMs = performance.now() - began;
    // A statement's text does not contain its values.
    if (durationMs >= fromMs) report(sql.trim().replaceAll(/\s+/g, ' '), durationMs);
  };
  const timed = <Method extends (...args: never[]) => unknown>(sql: string, perform: Method): Method =>
    ((...args) => {
      const began = performance.now();
      try {
        return perform(...args);
      } finally {
        ended(sql, began);
      }
    }) as Method;
  const [prepare, exec] = [database.prepare.bind(database), database.exec.bind(database)];
  database.exec = (sql) => timed(sql, exec)(sql);
  database.prepare = (sql): StatementSync => {
    const statement = prepare(sql);
    for (const name of ['get', 'all', 'run'] as const)
      statement[name] = timed(sql, statement[name].bind(statement)) as never;
    const iterate = statement.iterate.bind(statement);
    // Includes the reader's work between rows, which delays others just as long.
    statement.iterate = function* (...parameters: never[]) {
      const began = performance.now();
      try {
        yield* iterate(...parameters);
      } finally {
        ended(sql, began);
      }
    } as typeof iterate;
    return statement;
  };
}
