import { assert } from '../../common/invariants.ts';
import type { ErasedLead, Lead } from './lead.ts';

export const CHANGE_KINDS = ['created', 'stage-changed', 'updated', 'resent', 'erased', 'enquired'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** A lead's current state, with its changes since the last acknowledgement. */
export interface LeadChange {
  readonly lead: Lead | ErasedLead;
  /** Grows with every change of the lead, so the higher revision is the newer state. Acknowledgements refer to it. */
  readonly revision: number;
  readonly since: Date;
  /** Each kind once, with the time of its latest change; oldest first. */
  readonly kinds: readonly { readonly kind: ChangeKind; readonly time: Date }[];
}

/** The unacknowledged changes of a lead, as they are stored with it. */
export interface ChangeMark {
  /** 0: unchanged since its creation. */
  readonly revision: number;
  /** The time of the first of them; null: there are none; undefined: it cannot be read. */
  readonly since: Date | null | undefined;
  /** The time of the latest of each kind; a kind of another release may be among them. */
  readonly kinds: Readonly<Record<string, unknown>>;
}

/** Higher than every revision of this service. One that is higher could overflow, and starts again. */
const MAX_REVISION = 2 ** 52;

/**
 * Returns the mark of a lead after a change. Kinds accumulate until they are acknowledged. The revision is at least the
 * time of the change, in milliseconds: a database restored from a backup has lost revisions that consumers have seen, and
 * so are new ones higher than those.
 */
export function marked({ revision, since, kinds }: ChangeMark, kind: ChangeKind, time: Date): ChangeMark {
  const last = revision < MAX_REVISION ? revision : -1;
  const next = Math.max(last + 1, time.getTime());
  assert(next > last, 'revision_grows');
  return {
    revision: next,
    since: since && since <= time ? since : time,
    kinds: { ...(since !== null && kinds), [kind]: time },
  };
}

/** A state of a lead that a consumer has processed. */
export interface Acknowledgement {
  readonly studioId: string;
  readonly leadId: string;
  readonly revision: number;
}

export const MAX_ACKNOWLEDGEMENTS = 500;
