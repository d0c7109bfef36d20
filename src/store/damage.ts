import { isCanonicalUuid } from '../../common/rules/field-rules.ts';
import { KEY_SLOTS } from '../domain/api-key.ts';
import { type ErasedLead, isOpen, type Lead } from '../domain/lead.ts';
import { DEFERRED, HANDLED, MAX_REVISION } from '../domain/lead-change.ts';
import { type Checked, checkedEnquiries, checkedEpoch, isTime, NO_TIME, nameOfRecord } from './checked.ts';
import { type ReportUnreadable, UnreadableRecord } from './store.ts';

/* What cannot be in a database, of either kind. */

/** What is wrong with some records, and what to do about it, in a sentence. */
export interface Fault {
  readonly what: string;
  readonly todo: string;
}

const fault = (what: string, todo = 'Restore a backup (docs/how-to/backup.md)'): Fault => ({ what, todo });
const resend = (what: string) => fault(what, 'Send these leads again: `lead-intake changes resend`');

const anew = (what: string) =>
  fault(what, 'Remove the consumer and create it again, with `--start all-leads`: `lead-intake consumers remove`');

export const FAULTS = {
  file: fault('places where the file is broken'),
  missing: fault(
    'parts of the schema that are missing',
    'A core makes what it needs when it starts, tables empty. If one of this release has run on this database, restore a backup (docs/how-to/backup.md)',
  ),
  // A creation is refused because of a key that is held, by whatever.
  unclaimed: fault(
    'open leads that do not hold the keys of their contact, which may have a second one',
    'Close and reopen each with `lead-intake leads stage`',
  ),
  claimed: fault(
    'closed leads that hold the keys of their contact, or are not found by it',
    'Reopen and close each with `lead-intake leads stage`',
  ),
  strayClaim: fault('keys of contacts that no lead has, whose contacts may have none'),
  personal: fault('erased leads of which personal data are left'),
  earlier: fault('leads that changed before they were created'),
  mark: resend('leads whose waiting changes cannot be read'),
  delivery: anew('deliveries that cannot be read'),
  // An acknowledgement is of a revision, and of all below.
  unreached: anew('deliveries of a state that their lead has not reached'),
  ofNoLead: fault('records of leads that do not exist'),
  ofNoStudio: fault('records of studios that do not exist'),
  ofNoKey: fault('events of API keys that do not exist'),
  // The index of slots bounds the keys of a studio.
  slot: fault('API keys in a slot that they cannot have', 'Revoke them: `lead-intake keys revoke`'),
  revokedSlot: fault('revoked API keys in the slot of another, so that their studio may have fewer'),
  consumer: fault(
    'consumers whose number or name another one has, or may get',
    'Remove and create them again: `lead-intake consumers remove`',
  ),
  tests: fault(
    'test studios whose leads the change feed sends like those of others',
    'Create another one, which marks the feed: `lead-intake studios put NAME --test`',
  ),
  epoch: fault('epochs that cannot be read', 'Run `lead-intake restored` again'),
  retention: fault('times of retention that cannot be read', 'A core begins another one within a minute'),
  lostEvents: fault('records some of whose events are gone'),
};

/** What is wrong, and at which record: its ids, and nothing else of it. */
export interface Wrong {
  readonly fault: Fault;
  readonly record: string;
}

export const wrongIf = (isWrong: unknown, fault: Fault, record: string): Wrong[] =>
  isWrong ? [{ fault, record }] : [];

/** Records that were read together, and what is wrong with them. */
export interface InspectedPage {
  readonly records: number;
  readonly wrong: readonly Wrong[];
}

export interface Damage extends Fault {
  readonly count: number;
  /** The first MAX_NAMED. */
  readonly records: readonly string[];
}

export interface Inspection {
  readonly records: number;
  readonly damages: readonly Damage[];
}

export const MAX_NAMED = 10;

export type OnPage = (page: InspectedPage) => void;

export async function inspectionOf(pages: AsyncIterable<InspectedPage>, onPage: OnPage): Promise<Inspection> {
  const damages = new Map<string, Damage>();
  let records = 0;
  for await (const page of pages) {
    for (const { fault, record } of page.wrong) {
      const { count, records: named } = damages.get(fault.what) ?? { count: 0, records: [] };
      const all = count < MAX_NAMED ? [...named, record] : named;
      damages.set(fault.what, { ...fault, count: count + 1, records: all });
    }
    records += page.records;
    onPage(page);
  }
  return { records, damages: [...damages.values()] };
}

/** Returns what readers of a record cannot read of it, each field once. */
export function unreadableBy(...readers: readonly ((report: ReportUnreadable) => unknown)[]): Wrong[] {
  const found = new Map<string, Wrong>();
  const note: ReportUnreadable = ({ kind, field, ...ids }) => {
    const record = kind === 'studio' || kind === 'consumer' ? ids.id : nameOfRecord(ids);
    found.set(field, { fault: unreadable(kind, field), record });
  };
  for (const read of readers) {
    try {
      const record = read(note);
      if (record instanceof UnreadableRecord) note(record);
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      note(error);
    }
  }
  return [...found.values()];
}

export const unreadable = (kind: UnreadableRecord['kind'], field: string): Fault =>
  fault(
    `${kind}s whose ${field} cannot be read`,
    'Correct it (docs/how-to/runbook.md), or restore a backup (docs/how-to/backup.md)',
  );

/** A lead as a database has it. */
interface StoredLead {
  readonly lead: Checked<Lead | ErasedLead>;
  /** Of one that is not erased, whether exactly an open one holds its keys, and a closed one is found by them; undefined: they cannot be read. */
  readonly isClaimed: boolean | undefined;
  /** Of an erased one. */
  readonly hasPersonalData: boolean;
  readonly idempotencyKey: string;
  /** Undefined: it has none. */
  readonly enquiries: unknown;
  readonly mark: { readonly revision: unknown; readonly since: unknown; readonly kinds: unknown };
}

/** Returns what is wrong with a lead that can be read. */
export function faultsOfLead(stored: StoredLead): Wrong[] {
  const { lead, isClaimed, hasPersonalData, idempotencyKey, enquiries, mark } = stored;
  const read = lead instanceof UnreadableRecord ? undefined : lead;
  // That of another one is looked at with its record.
  const isForgotten = read && 'erasedAt' in read && !isCanonicalUuid(idempotencyKey);
  const { kept } = Object(enquiries);
  const areEnquiries = Array.isArray(kept) && checkedEnquiries(enquiries).kept.length === kept.length;
  const isMark =
    isRevision(mark.revision) &&
    (mark.since === null || mark.since === undefined || isDate(mark.since)) &&
    isEntries(mark.kinds);
  const record = nameOfRecord(lead);
  return [
    ...wrongIf(read && isClaimed === false, isOpen(read?.stage ?? 'new') ? FAULTS.unclaimed : FAULTS.claimed, record),
    ...wrongIf(isClaimed === undefined, unreadable('lead', 'contact keys'), record),
    ...wrongIf(hasPersonalData, FAULTS.personal, record),
    ...wrongIf(isForgotten, unreadable('lead', 'idempotencyKey'), record),
    ...wrongIf(read && read.createdAt > read.updatedAt, FAULTS.earlier, record),
    ...wrongIf(enquiries !== undefined && !areEnquiries, unreadable('lead', 'enquiries'), record),
    ...wrongIf(!isMark, FAULTS.mark, record),
  ];
}

/** Of what waits, also one that only orders it. */
const isDate = (value: unknown): value is Date => value instanceof Date && !Number.isNaN(value.getTime());

const isRevision = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < MAX_REVISION;

const isEntries = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

/** A key is in one of the slots of its studio, or, if it is not live, in that of its id. */
export const faultsOfSlot = (
  { slot, id, studioId }: Readonly<Record<'slot' | 'id' | 'studioId', unknown>>,
  isRevoked: boolean,
): Wrong[] =>
  wrongIf(
    slot !== id && (isRevoked || !KEY_SLOTS.includes(slot as string)),
    isRevoked ? FAULTS.revokedSlot : FAULTS.slot,
    nameOfRecord({ studioId, id }),
  );

export function faultsOfEpoch({
  epoch,
  restoredTo,
}: {
  readonly epoch: unknown;
  readonly restoredTo: unknown;
}): Wrong[] {
  const read = checkedEpoch({ epoch, restoredTo, backedUpAt: null });
  const isNever = epoch === 0 && restoredTo === null;
  const isRead = read.epoch > 0 && read.epoch === epoch && read.restoredTo !== NO_TIME;
  return wrongIf(!isNever && !isRead, FAULTS.epoch, `${Number(epoch)}`);
}

/** A delivery as a database has it, with the revision of its lead; undefined: it has none. */
type StoredDelivery = Readonly<Record<'revision' | 'since' | 'due' | 'kinds' | 'reason' | 'leadRevision', unknown>>;

export function faultsOfDelivery(record: string, stored: StoredDelivery): Wrong[] {
  const { revision, since, due, kinds, reason, leadRevision } = stored;
  const isAside = isDate(due) && due.getTime() >= DEFERRED && due.getTime() < HANDLED;
  const isReadable =
    isRevision(revision) &&
    isTime(since) &&
    isDate(due) &&
    isEntries(kinds) &&
    (!isAside || typeof reason === 'string');
  if (!isReadable) return [{ fault: FAULTS.delivery, record }];
  return wrongIf(isRevision(leadRevision) && revision > leadRevision, FAULTS.unreached, record);
}
