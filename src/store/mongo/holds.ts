import type { Collection, Filter, UpdateFilter } from 'mongodb';
import { checkedHold } from '../checked.ts';
import { decideHold } from '../decisions/holds.ts';
import type { HoldPut, HoldStore, PutHoldOutcome } from '../store.ts';
import { applyOnce } from './apply-once.ts';
import type { Connection } from './connection.ts';
import { isErased, type LeadDocument, leadKey, type StudioDocument } from './documents.ts';
import { sameHold, sameMark } from './marks.ts';

/** Puts and removes holds, in MongoDB: in the record that is held, and on the condition that it has not changed. */
export function mongoHolds({ leads, studios, oldEvents, call }: Connection): HoldStore {
  return {
    putHold: (put) =>
      call((deadline) => {
        const { studioId, leadId } = put;
        if (leadId === null) return change(studios, deadline, put, { _id: studioId });
        return change(leads, deadline, put, { studioId, _id: leadKey(studioId, leadId) }, sameMark);
      }),
  };

  function change<Document extends LeadDocument | StudioDocument>(
    collection: Collection<Document>,
    deadline: AbortSignal,
    put: HoldPut,
    which: object,
    alsoSame: (found: Document) => object = () => ({}),
  ): Promise<PutHoldOutcome> {
    const { studioId, leadId } = put;
    return applyOnce<Document, PutHoldOutcome>(collection, deadline, {
      which: which as Filter<Document>,
      fields: { changes: 1, hold: 1, erasedAt: 1 },
      requestId: put.requestId,
      oldEvents,
      async decide(document, isApplied) {
        const found = document as Document | null;
        const isGone = !found || ('erasedAt' in found && isErased(found));
        const decision = decideHold(isGone ? null : { hold: checkedHold(found.hold) }, put, isApplied);
        if (!found || !('write' in decision)) return decision as { readonly outcome: PutHoldOutcome };
        const { outcome, write, events } = decision;
        const where = { ...alsoSame(found), ...sameHold(found) } as Filter<Document>;
        const record = { kind: leadId === null ? 'studio' : 'lead', studioId, id: leadId ?? studioId } as const;
        const { hold } = write ?? {};
        const update: object = hold ? { $set: { hold } } : { $unset: { hold: 1 } };
        return { outcome, where, ...(write && { update: update as UpdateFilter<Document> }), events, record };
      },
    });
  }
}
