import { inspect } from 'node:util';
import type { ApiKey } from '../../src/domain/api-key.ts';
import type { AuditEvent } from '../../src/domain/audit.ts';
import type { Lead } from '../../src/domain/lead.ts';
import type { LeadSource, Member } from '../../src/domain/studio.ts';
import type { UnreadableRecord } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import { aMember, aStudio, BY } from '../support/builders.ts';

/** An empty store for one test, with access to its database. */
export interface OpenedStore {
  readonly store: Store;
  /** Closes the store and opens its data again, like a restart of the process. */
  reopen(): Promise<Store>;
  /** Opens a second store on the same data, like a second process. */
  another(): Promise<Store>;
  /** The records that the stores have reported as unreadable. */
  readonly reported: readonly UnreadableRecord[];
  /** Overwrites a field of existing records directly in the database. */
  damage(damage: Damage, ...records: readonly { readonly studioId: string; readonly id: string }[]): Promise<void>;
  readonly databaseUrl: string;
  /** Inserts records directly, ignoring limits: keys that hold no slot, and events of the studio and its keys. */
  fill(content: Content): Promise<void>;
  /** Inserts leads concurrently, as the store creates them. */
  makeLeads(...leads: readonly Lead[]): Promise<void>;
  /** Inserts active studios directly into the database, with any ids. */
  makeStudios(...ids: readonly string[]): Promise<void>;
  /** Closes all stores and removes the data. */
  dispose(): Promise<void>;
}

interface Content {
  readonly members?: readonly Member[];
  readonly sources?: readonly LeadSource[];
  readonly keys?: readonly ApiKey[];
  /** Oldest first. */
  readonly events?: readonly AuditEvent[];
}

/** A value that this release would not write into a field of a record; undefined removes the field. */
export interface Damage {
  readonly kind:
    | 'lead'
    | 'creation'
    | 'original'
    | 'enquiries'
    | 'uniqueness key'
    | 'pending change'
    | 'part of a pending change'
    | 'pending change of 1.0'
    | 'key'
    | 'studio'
    | 'region'
    | 'member'
    | 'source'
    | 'event'
    | 'consumer'
    | 'delivery'
    | 'epoch'
    | 'request'
    | 'lead with events'
    | 'key with events';
  /** Its name in the database. */
  readonly field: string;
  readonly value: unknown;
}

/** Tries each damage of some kinds, in a studio of its own that has the usual member. An error names the damage. */
export async function tryEach(
  { store }: OpenedStore,
  damages: readonly Damage[],
  kinds: readonly Damage['kind'][],
  attempt: (damage: Damage, studioId: string) => Promise<void>,
): Promise<void> {
  const tried = damages.filter(({ kind }) => kinds.includes(kind));
  for (const [index, damage] of tried.entries()) {
    const studioId = `damaged-${index}`;
    await store.putStudio(aStudio({ id: studioId }), BY);
    await store.putMember(aMember({ studioId }), BY);
    await attempt(damage, studioId).catch((error) => {
      const { kind, field, value } = damage;
      const shown = inspect(value, { breakLength: Infinity }).slice(0, 30);
      error.message = `a ${kind} whose ${field} is ${shown}: ${error.message}`;
      throw error;
    });
  }
}

/** Returns the damage that leaves a lead without a name. */
export function emptyName(damages: readonly Damage[]): Damage {
  const found = damages.find(
    ({ kind, field, value }) => kind === 'lead' && /^display_?name$/i.test(field) && (value === '' || value === '""'),
  );
  if (!found) throw new Error('the adapter has no damage that empties the name of a lead');
  return found;
}
