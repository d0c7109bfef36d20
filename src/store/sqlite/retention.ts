import type { RetentionStore } from '../port/retention.ts';
import type { Connection } from './connection.ts';
import { number } from './rows.ts';

export function sqliteRetention({
  database,
  plainCommits,
}: Pick<Connection, 'database' | 'plainCommits'>): RetentionStore {
  const select = database.prepare(`SELECT version, ${number('time')} AS time FROM retention_time WHERE one = 1`);
  const insert = database.prepare(
    'INSERT INTO retention_time (one, version, time) VALUES (1, 1, ?) ON CONFLICT DO NOTHING',
  );
  const update = database.prepare(
    'UPDATE retention_time SET version = version + 1, time = ? WHERE one = 1 AND version = ?',
  );
  return {
    async findRetentionTime() {
      const row = select.get();
      if (!row) return null;
      const time = new Date(row.time as number);
      return { version: row.version as number, time: Number.isNaN(time.getTime()) ? null : time };
    },

    putRetentionTime: (version, time) =>
      plainCommits.write(() => {
        const { changes } = version === null ? insert.run(time.getTime()) : update.run(time.getTime(), version);
        return changes === 1;
      }),
  };
}
