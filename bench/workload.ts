import { randomUUID } from 'node:crypto';
import { LeadRequests, type Target } from './lead-requests.ts';

/** The kinds of request: one lead, 25 leads, an earlier creation again, a new lead. */
export const SCENARIOS = ['get', 'list', 'replay', 'create'] as const;

/** What a load consists of. */
export type Scenario = (typeof SCENARIOS)[number];

/** The status that each kind of request has to be answered with. */
export const EXPECTED_STATUS: Readonly<Record<Scenario, number>> = { get: 200, list: 200, replay: 201, create: 201 };

/** Makes up requests. */
export interface Requests {
  /** A request of a kind, made up anew. */
  request(scenario: Scenario): Buffer;
}

/** Makes up requests to one target, which knows some leads. */
export class Workload implements Requests {
  readonly #requests: LeadRequests;
  readonly #replays: Buffer[] = [];
  readonly #gets: Buffer[] = [];
  readonly #pages: Buffer[] = [];
  readonly #firstPage: Buffer;

  constructor(target: Target) {
    this.#requests = new LeadRequests(target);
    this.#firstPage = this.#requests.page(null);
  }

  request(scenario: Scenario): Buffer {
    switch (scenario) {
      case 'create':
        return this.creation();
      case 'replay':
        return anyOf(this.#replays);
      case 'get':
        return anyOf(this.#gets);
      case 'list':
        return Math.random() < 0.5 ? this.#firstPage : anyOf(this.#pages);
    }
  }

  /** The creation of a lead whose idempotency key and contact are those of nobody else. */
  creation(): Buffer {
    return this.#requests.creation(randomUUID());
  }

  /** Lets a lead be read and its creation be repeated from now on. */
  know(creation: Buffer, leadId: string): void {
    this.#replays.push(creation);
    this.#gets.push(this.#requests.lead(leadId));
  }

  /** The page at a cursor, which belongs to the listing from now on; null: the first. */
  page(cursor: string | null): Buffer {
    if (cursor === null) return this.#firstPage;
    const page = this.#requests.page(cursor);
    this.#pages.push(page);
    return page;
  }
}

/** Makes up creations, and requests for first pages, with many keys evenly. */
export class EvenWorkload implements Requests {
  readonly #requests: readonly LeadRequests[];
  readonly #pageSize: number;

  constructor(targets: readonly Target[], pageSize: number) {
    this.#requests = targets.map((target) => new LeadRequests(target));
    this.#pageSize = pageSize;
  }

  request(scenario: Scenario): Buffer {
    const requests = anyOf(this.#requests);
    switch (scenario) {
      case 'create':
        return requests.creation(randomUUID());
      case 'list':
        return requests.page(null, this.#pageSize);
      default:
        throw new Error(`no lead is known for ${scenario}`);
    }
  }

  /** The first page with each key. */
  *everyPage(): Generator<Buffer> {
    for (const requests of this.#requests) yield requests.page(null, this.#pageSize);
  }
}

function anyOf<Item>(items: readonly Item[]): Item {
  return items[Math.floor(Math.random() * items.length)] as Item;
}
