import { randomUUID } from 'node:crypto';
import type { Lead, LeadClaims } from '../src/domain/lead.ts';
import { aLead, claimsOf } from '../test/support/builders.ts';
import { captureFor } from './lead-requests.ts';

/** The studio that grows. */
export const BUSY = 'busy-studio';
/** A studio whose leads are all older than those of the busy one. */
export const QUIET = 'quiet-studio';
/** The source of all leads. */
export const SOURCE_ID = randomUUID();

/** The page size. */
export const PAGE = 25;

/** The number of leads that are read: the same for each database, so that both caches are equally warm. */
const SAMPLE = 1000;

export interface CreatedLead {
  readonly lead: Lead;
  readonly claims: LeadClaims;
}

/** A lead as a website's form sends it, with a random idempotency key and contact. */
export function someLead(studioId: string): CreatedLead {
  const idempotencyKey = randomUUID();
  const lead = aLead({ studioId, ...captureFor(idempotencyKey, SOURCE_ID) });
  return { lead, claims: claimsOf(lead, { idempotencyKey }) };
}

/** A page, and what it must contain. */
export interface Page {
  readonly studioId: string;
  /** The last lead before it; null: none, it is the first page. */
  readonly after: string | null;
  readonly first: string;
  readonly isLast: boolean;
}

/** The known leads of a database: what to request, and which responses are right. */
export class KnownLeads {
  readonly #sampleEvery: number;
  /** Evenly distributed, oldest first, each with the next older lead. */
  readonly #sample: (CreatedLead & { readonly older: string })[] = [];
  readonly #oldest: string[] = [];
  readonly #newest: Record<string, string> = {};
  #count = 0;

  /** @param count the future number of leads of the busy studio */
  constructor(count: number) {
    this.#sampleEvery = Math.max(1, Math.floor(count / SAMPLE));
  }

  /** Records loaded leads, in order. */
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
   * Records created leads of the busy studio.
   *
   * @throws Error when one of them is a duplicate or existed before
   */
  created(ids: readonly string[]): void {
    const newest = this.#newest[BUSY] ?? '';
    if (new Set(ids).size < ids.length || ids.some((id) => id <= newest)) throw new Error('a created lead is not new');
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

  /** A page around the middle, a different one in each turn. */
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
