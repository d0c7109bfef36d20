import type { Filter } from 'mongodb';
import { type DatabaseEpoch, epochAfterRestore } from '../../domain/database-epoch.ts';
import { eventOfAct, restoreAct } from '../decisions/decision.ts';
import type { RestoreStore } from '../port/restores.ts';
import { checkedEpoch } from '../records.ts';
import { changer } from './apply-once.ts';
import type { Connection } from './connection.ts';
import { type ConsumersDocument, NO_CONSUMERS } from './documents.ts';
import { filterSome, ID_ONLY, READ } from './queries.ts';

/** The epoch of the database, and the leads that it lost, in MongoDB. MongoDB's own tools store no time in a backup. */
export function mongoRestores(connection: Connection): RestoreStore {
  const { feed, leads, call } = connection;
  const change = changer(connection, feed);
  const fields = { epoch: 1, restoredTo: 1 } as const;
  const check = (found: ConsumersDocument | null) =>
    checkedEpoch({ epoch: found?.epoch, restoredTo: found?.restoredTo, backedUpAt: null });
  return {
    findEpoch: () => call(async () => check(await feed.findOne({ _id: 'consumers' }, { ...READ, projection: fields }))),

    raiseEpoch: (to, now, by) =>
      change<DatabaseEpoch>({
        which: { _id: 'consumers' },
        fields,
        async decide(found, isApplied) {
          if (isApplied) return { outcome: check(found) };
          const outcome = epochAfterRestore(check(found), to, now);
          const { epoch, restoredTo } = outcome;
          const events = [eventOfAct({ ...by, now }, restoreAct(outcome))];
          if (!found) return { outcome, insert: { _id: 'consumers', ...NO_CONSUMERS, epoch, restoredTo }, events };
          const where = { epoch: found.epoch ?? null } as Filter<ConsumersDocument>;
          return { outcome, where, update: { $set: { epoch, restoredTo } }, events };
        },
      }),

    findMissingLeads: (studioId, leadIds) =>
      call(async () => {
        const found = await leads.find(filterSome({ studioId, leadIds }), ID_ONLY).toArray();
        const ids = new Set(found.map(({ _id }) => _id.id.toString()));
        return leadIds.filter((id) => !ids.has(id));
      }),
  };
}
