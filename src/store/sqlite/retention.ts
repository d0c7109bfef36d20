import type { RetentionStore } from '../port/retention.ts';
import type { Connection } from './connection.ts';
import { number } from './rows.ts';

export function sqliteRetention({ prepare, plainCommits }: Connection): RetentionStore {
  const select = prepare<[version: number, ms: number]>(
    `SELECT version, ${number('time')} FROM retention_time WHERE one = 1`,
  );
  const insert = prepare('INSERT INTO retention_time (one, version, time) VALUES (1, 1, ?) ON CONFLICT DO NOTHING');
  const update = prepare('UPDATE retention_time SET version = version + 1, time = ? WHERE one = 1 AND version = ?');
  return {
    async findRetentionTime() {
      const row = select.get();
      if (!row) return null;
      const [version, ms] = row;
      const time = new Date(ms);
      return { version, time: Number.isNaN(time.getTime()) ? null : time };
    },

    putRetentionTime: (version, time) =>
      plainCommits.write(() => {
        const { changes } = version === null ? insert.run(time.getTime()) : update.run(time.getTime(), version);
        return changes === 1;
      }),
  };
}
