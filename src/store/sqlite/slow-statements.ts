import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { SlowCommands } from '../store.ts';

/** Reports the slow statements of a database: those prepared from now on, and transactions. */
export function reportSlowStatements(database: DatabaseSync, { fromMs, report }: SlowCommands): void {
  const timed = <Method extends (...args: never[]) => unknown>(sql: string, perform: Method): Method =>
    ((...args) => {
      const began = performance.now();
      try {
        return perform(...args);
      } finally {
        const durationMs = performance.now() - began;
        // A statement has its values apart.
        if (durationMs >= fromMs) report(sql.trim().replaceAll(/\s+/g, ' '), durationMs);
      }
    }) as Method;
  const [prepare, exec] = [database.prepare.bind(database), database.exec.bind(database)];
  database.exec = (sql) => timed(sql, exec)(sql);
  database.prepare = (sql): StatementSync => {
    const statement = prepare(sql);
    statement.get = timed(sql, statement.get.bind(statement));
    statement.all = timed(sql, statement.all.bind(statement));
    statement.run = timed(sql, statement.run.bind(statement));
    return statement;
  };
}
