import type { RetentionStore } from '../port/retention.ts';
import type { Connection } from './connection.ts';
import { READ } from './queries.ts';
import { isInserted } from './server-refusal.ts';

export const mongoRetention = ({ retention, call }: Connection): RetentionStore => ({
  findRetentionTime: () =>
    call(async () => {
      const found = await retention.findOne({ _id: 'retention' }, READ);
      return found && { version: found.version, time: found.time instanceof Date ? found.time : null };
    }),

  putRetentionTime: (version, time) =>
    call(async () => {
      const put = { version: (version ?? 0) + 1, time };
      if (version === null) return isInserted(retention.insertOne({ _id: 'retention', ...put }));
      return (await retention.updateOne({ _id: 'retention', version }, { $set: put })).matchedCount === 1;
    }),
});
