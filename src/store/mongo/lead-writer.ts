import type { UpdateFilter } from 'mongodb';
import type { Decide, LeadWrite, StoredLead } from '../decisions.ts';
import type { LeadCommand } from '../store.ts';
import { applyOnce } from './apply-once.ts';
import type { Connection } from './connection.ts';
import {
  alreadyOpen,
  claimsDocument,
  contactKeysIn,
  erasedClaim,
  erasedLeadOf,
  fieldsDocument,
  formerKeysIn,
  type LeadDocument,
  leadKey,
  openClaim,
  originalDocument,
  presentLeadOf,
  WITHOUT_HISTORY,
} from './documents.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { asRead, markOf } from './lead-changes.ts';

/** The fields with personal data, or computed from such. */
const PERSONAL = {
  displayName: 1,
  contact: 1,
  sourceId: 1,
  note: 1,
  original: 1,
  contactRule: 1,
  'idempotency.fingerprint': 1,
  'idempotency.fingerprintVersion': 1,
} as const;

/** Returns a function that carries out what is decided about leads. */
export function leadWriter({ leads, call, indexes }: Connection) {
  // Concurrent changes of one lead would conflict and retry until their deadline.
  const mutex = new KeyedMutex();
  return <Command extends LeadCommand, Outcome>(decide: Decide<StoredLead, Command, Outcome, LeadWrite>) =>
    (command: Command): Promise<Outcome> =>
      call((deadline) => {
        const { studioId, leadId, requestId } = command;
        const _id = leadKey(studioId, leadId);
        let claimed: readonly string[] = [];
        const change = () =>
          applyOnce<LeadDocument, Outcome>(leads, deadline, {
            which: { studioId, _id },
            requestId,
            async onDuplicate() {
              const openContactKey = { $in: claimed.map(openClaim) };
              // The lead itself may have some of them, by this change or a concurrent one.
              const found = await leads.find({ studioId, openContactKey }, WITHOUT_HISTORY).toArray();
              const holder = found.find((each) => !_id.id.equals(each._id.id));
              return holder && (alreadyOpen(holder) as Outcome);
            },
            async decide(found, isApplied) {
              const decision = decide(found && storedLead(found), command, isApplied);
              if (!found || !('write' in decision)) return decision;
              const { outcome, write, events } = decision;
              const where = asRead(found);
              if (!write) return { outcome, where };
              if (write.claims?.isOpen) await indexes.expectValid('leads');
              claimed = write.claims?.contactKeys ?? [];
              // Of an erased lead, events that cannot be read are replaced, since they keep no personal data.
              const record = write.isErasure ? undefined : ({ kind: 'lead', studioId, id: leadId } as const);
              return { outcome, where, update: updateOf(leadId, write), events, record };
            },
          });
        return mutex.run([`${studioId} ${leadId}`], change);
      });
}

const storedLead = (document: LeadDocument): StoredLead => ({
  lead: presentLeadOf(document),
  remaining: erasedLeadOf({ erasedAt: new Date(0), ...document }),
  isCorrected: document.original !== undefined,
  contactKeys: contactKeysIn(document.openContactKey),
  formerKeys: formerKeysIn(document.openContactKey),
  mark: markOf(document),
});

function updateOf(leadId: string, { fields, mark, claims, original, isErasure }: LeadWrite) {
  const $set = {
    ...fieldsDocument(fields),
    changes: mark,
    ...(claims && claimsDocument(leadId, claims)),
    ...(original && { original: originalDocument(original) }),
    ...(isErasure && { erasedAt: fields.updatedAt, openContactKey: erasedClaim(leadId) }),
  };
  return { $set, ...(isErasure && { $unset: PERSONAL }) } as UpdateFilter<LeadDocument>;
}
