import { randomUUID } from 'node:crypto';
import { LeadRequests, type Target } from './lead-requests.ts';

/** The kinds of requests: one lead, 25 leads, a repeated creation, a new lead. */
export const SCENARIOS = ['get', 'list', 'replay', 'create'] as const;

export type Scenario = (typeof SCENARIOS)[number];

/** The expected status of each kind of request. */
export const EXPECTED_STATUS: Readonly<Record<Scenario, number>> = { get: 200, list: 200, replay: 201, create: 201 };

/** Creates random requests. */
export interface Requests {
  request(scenario: Scenario): Buffer;
}

/** Creates requests to a target with known leads. */
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

  /** A creation with a new idempotency key and contact. */
  creation(): Buffer {
    return this.#requests.creation(randomUUID());
  }

  /** Adds a lead to be read and a creation to be repeated. */
  know(creation: Buffer, leadId: string): void {
    this.#replays.push(creation);
    this.#gets.push(this.#requests.lead(leadId));
  }

  /** Returns the request for the page at a cursor (null: the first) and adds it to those of `list`. */
  page(cursor: string | null): Buffer {
    if (cursor === null) return this.#firstPage;
    const page = this.#requests.page(cursor);
    this.#pages.push(page);
    return page;
  }
}

/** Creates creations and requests for first pages, with many keys evenly. */
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
        throw new Error(`${scenario} is not possible without known leads`);
    }
  }

  /** A request for the first page with each key. */
  *everyPage(): Generator<Buffer> {
    for (const requests of this.#requests) yield requests.page(null, this.#pageSize);
  }
}

function anyOf<Item>(items: readonly Item[]): Item {
  return items[Math.floor(Math.random() * items.length)] as Item;
}
