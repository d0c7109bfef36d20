import type { Filter } from 'mongodb';
import { epochAfterRestore } from '../../domain/database-epoch.ts';
import { checkedEpoch } from '../checked.ts';
import { eventOfAct, restoreAct } from '../decisions.ts';
import type { RestoreStore } from '../store.ts';
import { makeRoom } from './apply-once.ts';
import { type Connection, untilKnown } from './connection.ts';
import { type ConsumersDocument, historyEntry, NO_CONSUMERS, newest, READ, someOf } from './documents.ts';

/** Which database this is, and what it has lost, in MongoDB, whose tools note nothing in a backup. */
export function mongoRestores({ feed, leads, oldEvents, call }: Connection): RestoreStore {
  const read = () => feed.findOne({ _id: 'consumers' }, { ...READ, projection: { epoch: 1, restoredTo: 1 } });
  const check = (found: Pick<ConsumersDocument, 'epoch' | 'restoredTo'> | null) =>
    checkedEpoch({ epoch: found?.epoch, restoredTo: found?.restoredTo, backedUpAt: null });
  return {
    findEpoch: () => call(async () => check(await read())),

    raiseEpoch: (to, now, by) =>
      call((deadline) =>
        untilKnown(deadline, async () => {
          const found = await read();
          const raised = epochAfterRestore(check(found), to, now);
          const { epoch, restoredTo } = raised;
          const filter = { _id: 'consumers', epoch: found?.epoch ?? null } as Filter<ConsumersDocument>;
          await makeRoom(feed, oldEvents, { _id: 'consumers' });
          const history = newest([historyEntry(eventOfAct({ ...by, now }, restoreAct(raised)))]);
          const update = { $set: { epoch, restoredTo }, $setOnInsert: NO_CONSUMERS, $push: { history } };
          // After another raise in between, it is a duplicate key.
          await feed.updateOne(filter, update, { upsert: true });
          return raised;
        }),
      ),

    findMissingLeads: (studioId, leadIds) =>
      call(async () => {
        const found = await leads.find(someOf({ studioId, leadIds }), { ...READ, projection: { _id: 1 } }).toArray();
        const ids = new Set(found.map(({ _id }) => _id.id.toString()));
        return leadIds.filter((id) => !ids.has(id));
      }),
  };
}
