import { randomUUID } from 'node:crypto';
import { newKeySecret } from '../common/rules/key-secret.ts';
import type { LeadData } from '../src/domain/lead-data.ts';

/** The kinds of requests: one lead, 25 leads, a replayed creation, a new lead. */
export const SCENARIOS = ['get', 'list', 'replay', 'create'] as const;

/** `guess`: a read with a key that nobody has. */
export type Scenario = (typeof SCENARIOS)[number] | 'guess';

/** The expected statuses of each kind of request. */
export const EXPECTED: Readonly<Record<Scenario, readonly number[]>> = {
  get: [200],
  list: [200],
  replay: [201],
  create: [201],
  guess: [401, 429],
};

/** The destination and content of requests. */
export interface Target {
  readonly url: string;
  /** The bearer key. */
  readonly secret: string;
  /** A source of the key's studio. */
  readonly sourceId: string;
}

/** The number of known leads of each target. */
export const LEADS = 1000;

export const PAGE_SIZE = 25;

const PATH = '/v1/integrations/leads';

/** Returns a lead as a website's form sends it. Its contact is as unique as its idempotency key. */
export function captureFor(idempotencyKey: string, sourceId: string): Partial<LeadData> {
  return {
    displayName: 'Ada Lovelace',
    contact: { type: 'email', value: `${idempotencyKey}@example.org` },
    sourceId,
    note: 'Would like to come on a weekday, after six.',
  };
}

/** Existing leads of a target, and cursors of pages. */
export interface KnownLeads {
  readonly leads: readonly {
    readonly id: string;
    readonly idempotencyKey: string;
    /** The key that reads the lead, and its source; undefined: the target's. */
    readonly secret?: string;
    readonly sourceId?: string;
  }[];
  readonly cursors: readonly string[];
  /** The keys with which leads are created and first pages read; undefined: only the target's. */
  readonly keys?: readonly Omit<Target, 'url'>[];
}

/** Creates the bytes of requests to a target. */
export class Workload {
  readonly #target: Target;
  readonly #creators: readonly { readonly head: string; readonly sourceId: string }[];
  readonly #firstPages: readonly Buffer[];
  readonly #pages: readonly Buffer[];
  readonly #gets: readonly Buffer[];
  readonly #replays: readonly Buffer[];

  constructor(target: Target, { leads, cursors, keys = [target] }: KnownLeads = { leads: [], cursors: [] }) {
    this.#target = target;
    this.#creators = keys.map(({ secret, sourceId }) => ({ head: this.#creationHead(secret), sourceId }));
    this.#firstPages = keys.map(({ secret }) => this.page(null, secret));
    this.#pages = cursors.map((cursor) => this.page(cursor));
    this.#gets = leads.map(({ id, secret }) => this.#get(`${PATH}/${id}`, secret));
    this.#replays = leads.map(({ idempotencyKey, secret = target.secret, sourceId = target.sourceId }) =>
      this.creation(idempotencyKey, { head: this.#creationHead(secret), sourceId }),
    );
  }

  /** Returns a random request of a scenario. */
  request(scenario: Scenario): Buffer {
    switch (scenario) {
      case 'create':
        return this.creation(randomUUID());
      case 'replay':
        return anyOf(this.#replays);
      case 'get':
        return anyOf(this.#gets);
      case 'list':
        return anyOf(this.#pages.length === 0 || Math.random() < 0.5 ? this.#firstPages : this.#pages);
      case 'guess':
        return this.#get(PATH, newKeySecret());
    }
  }

  /** Returns the creation with an idempotency key. */
  creation(idempotencyKey: string, { head, sourceId } = anyOf(this.#creators)): Buffer {
    const body = JSON.stringify(captureFor(idempotencyKey, sourceId));
    const own = `idempotency-key: ${idempotencyKey}\r\ncontent-length: ${body.length}\r\n\r\n`;
    return Buffer.from(head + own + body, 'latin1');
  }

  /** Returns the read of the page at a cursor; null: the first page. */
  page(cursor: string | null, secret?: string): Buffer {
    return this.#get(`${PATH}?limit=${PAGE_SIZE}${cursor === null ? '' : `&cursor=${cursor}`}`, secret);
  }

  #creationHead(secret: string): string {
    return `${this.#head('POST', PATH, secret)}content-type: application/json\r\n`;
  }

  #get(path: string, secret?: string): Buffer {
    return Buffer.from(`${this.#head('GET', path, secret)}\r\n`, 'latin1');
  }

  #head(method: string, path: string, secret = this.#target.secret): string {
    const { host } = new URL(this.#target.url);
    return `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${secret}\r\n`;
  }
}

function anyOf<Item>(items: readonly Item[]): Item {
  return items[Math.floor(Math.random() * items.length)] as Item;
}
