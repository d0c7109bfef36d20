import { randomUUID } from 'node:crypto';
import type { Lead, LeadClaims } from '../src/domain/lead.ts';
import { aLead, claimsOf } from '../test/support/builders.ts';
import { captureFor } from './lead-requests.ts';

/** The studio that grows. */
export const BUSY = 'busy-studio';
/** A studio whose leads all came before those of the other one. */
export const QUIET = 'quiet-studio';
/** The source that all leads of both studios come from. */
export const SOURCE_ID = randomUUID();

/** A page of the usual size. */
export const PAGE = 25;

/** How many leads are remembered to be read again: as many of every database, so that its caches hold them. */
const SAMPLE = 1000;

export interface CreatedLead {
  readonly lead: Lead;
  readonly claims: LeadClaims;
}

/** A lead as a form on a website sends it, under the kind of key that falls anywhere into an index. */
export function someLead(studioId: string): CreatedLead {
  const idempotencyKey = randomUUID();
  const lead = aLead({ studioId, ...captureFor(idempotencyKey, SOURCE_ID) });
  return { lead, claims: claimsOf(lead, { idempotencyKey }) };
}

/** A page, and what it has to show. */
export interface Page {
  readonly studioId: string;
  /** The last lead before it; null: it is the first page. */
  readonly after: string | null;
  readonly first: string;
  /** Whether no lead is left after it. */
  readonly isLast: boolean;
}

/** What is known of a database's leads: what to ask for, and which answers are right. */
export class KnownLeads {
  readonly #sampleEvery: number;
  /** Evenly spread, oldest first, each with the lead before it in time. */
  readonly #sample: (CreatedLead & { readonly older: string })[] = [];
  readonly #oldest: string[] = [];
  readonly #newest: Record<string, string> = {};
  #count = 0;

  /** @param count how many leads the busy studio is going to have */
  constructor(count: number) {
    this.#sampleEvery = Math.max(1, Math.floor(count / SAMPLE));
  }

  /** Takes note of leads that were loaded, in their order. */
  loaded(leads: readonly CreatedLead[]): void {
    for (const created of leads) {
      const { id, studioId } = created.lead;
      const older = this.#newest[studioId];
      this.#newest[studioId] = id;
      if (studioId !== BUSY) continue;
      if (this.#oldest.length <= PAGE) this.#oldest.push(id);
      if (older !== undefined && this.#count % this.#sampleEvery === 0) this.#sample.push({ ...created, older });
      this.#count += 1;
    }
  }

  /**
   * Takes note of what the busy studio's creations gave.
   *
   * @throws Error when that is a lead twice, or one that was there before
   */
  created(ids: readonly string[]): void {
    const newest = this.#newest[BUSY] ?? '';
    if (new Set(ids).size < ids.length || ids.some((id) => id <= newest)) throw new Error('a lead that is not new');
    this.#newest[BUSY] = ids.toSorted().at(-1) ?? newest;
  }

  get sample(): readonly CreatedLead[] {
    return this.#sample;
  }

  any(): CreatedLead {
    return this.#sample[Math.floor(Math.random() * this.#sample.length)] as CreatedLead;
  }

  firstPage(): Page {
    return { studioId: BUSY, after: null, first: this.#newest[BUSY] ?? '', isLast: false };
  }

  /** A page around the middle, another one in every turn. */
  middlePage(turn: number): Page {
    const { length } = this.#sample;
    const sampled = this.#sample[Math.floor(length / 2) + (turn % Math.ceil(length / 10))];
    if (!sampled) throw new Error('no leads are known');
    return { studioId: BUSY, after: sampled.lead.id, first: sampled.older, isLast: false };
  }

  lastPage(): Page {
    return { studioId: BUSY, after: this.#oldest[PAGE] ?? '', first: this.#oldest[PAGE - 1] ?? '', isLast: true };
  }

  quietPage(): Page {
    return { studioId: QUIET, after: null, first: this.#newest[QUIET] ?? '', isLast: false };
  }
}
