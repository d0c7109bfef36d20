import { randomUUID } from 'node:crypto';

/** The kinds of request: one lead, 25 leads, an earlier creation again, a new lead. */
export const SCENARIOS = ['get', 'list', 'replay', 'create'] as const;

/** What a load consists of. */
export type Scenario = (typeof SCENARIOS)[number];

/** Where requests go and what they carry. */
export interface Target {
  readonly url: string;
  /** The bearer key. */
  readonly secret: string;
  /** A source of the key's studio. */
  readonly sourceId: string;
}

const PATH = '/v1/integrations/leads';

/** The status that each kind of request has to be answered with. */
export const EXPECTED_STATUS: Readonly<Record<Scenario, number>> = { get: 200, list: 200, replay: 201, create: 201 };

/** Makes the bytes of requests to one target, which knows some leads. */
export class Workload {
  readonly #target: Target;
  readonly #creationHead: string;
  readonly #replays: Buffer[] = [];
  readonly #gets: Buffer[] = [];
  readonly #pages: Buffer[] = [];
  readonly #firstPage: Buffer;

  constructor(target: Target) {
    this.#target = target;
    this.#creationHead = `${this.#head('POST', PATH)}content-type: application/json\r\n`;
    this.#firstPage = this.#page(null);
  }

  /** A request of a kind, made up anew. */
  request(scenario: Scenario): Buffer {
    switch (scenario) {
      case 'create':
        return this.creation(randomUUID());
      case 'replay':
        return anyOf(this.#replays);
      case 'get':
        return anyOf(this.#gets);
      case 'list':
        return Math.random() < 0.5 ? this.#firstPage : anyOf(this.#pages);
    }
  }

  /** The creation of a lead whose idempotency key and contact are those of nobody else. */
  creation(idempotencyKey: string): Buffer {
    const body =
      `{"displayName":"Ada Lovelace","contact":{"type":"email","value":"${idempotencyKey}@example.org"},` +
      `"sourceId":"${this.#target.sourceId}","note":"Would like to come on a weekday, after six."}`;
    const head = `${this.#creationHead}idempotency-key: ${idempotencyKey}\r\ncontent-length: ${body.length}\r\n\r\n`;
    return Buffer.from(head + body, 'latin1');
  }

  /** Lets a lead be read and its creation be repeated from now on. */
  know(creation: Buffer, leadId: string): void {
    this.#replays.push(creation);
    this.#gets.push(this.#get(`${PATH}/${leadId}`));
  }

  /** The page at a cursor, which belongs to the listing from now on; null: the first. */
  page(cursor: string | null): Buffer {
    if (cursor === null) return this.#firstPage;
    const page = this.#page(cursor);
    this.#pages.push(page);
    return page;
  }

  #page(cursor: string | null): Buffer {
    return this.#get(`${PATH}?limit=25${cursor === null ? '' : `&cursor=${cursor}`}`);
  }

  #get(path: string): Buffer {
    return Buffer.from(`${this.#head('GET', path)}\r\n`, 'latin1');
  }

  #head(method: string, path: string): string {
    const { host } = new URL(this.#target.url);
    return `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${this.#target.secret}\r\n`;
  }
}

function anyOf(requests: readonly Buffer[]): Buffer {
  return requests[Math.floor(Math.random() * requests.length)] as Buffer;
}
