import type { LeadData } from '../src/domain/fingerprint.ts';

/** What requests of a studio contain. */
export interface KeyOfStudio {
  /** The bearer key. */
  readonly secret: string;
  /** A source of the key's studio. */
  readonly sourceId: string;
}

/** The destination and content of requests. */
export interface Target extends KeyOfStudio {
  readonly url: string;
}

const PAGE_SIZE = 25;

const PATH = '/v1/integrations/leads';

/** A lead as a website's form sends it; its contact is as unique as its idempotency key. */
export function captureFor(idempotencyKey: string, sourceId: string): LeadData {
  return {
    displayName: 'Ada Lovelace',
    contact: { type: 'email', value: `${idempotencyKey}@example.org` },
    sourceId,
    note: 'Would like to come on a weekday, after six.',
  };
}

/** Creates the bytes of requests to a target. */
export class LeadRequests {
  readonly #target: Target;
  readonly #creationHead: string;

  constructor(target: Target) {
    this.#target = target;
    this.#creationHead = `${this.#head('POST', PATH)}content-type: application/json\r\n`;
  }

  /** The creation with an idempotency key. */
  creation(idempotencyKey: string): Buffer {
    const body = JSON.stringify(captureFor(idempotencyKey, this.#target.sourceId));
    const head = `${this.#creationHead}idempotency-key: ${idempotencyKey}\r\ncontent-length: ${body.length}\r\n\r\n`;
    return Buffer.from(head + body, 'latin1');
  }

  lead(id: string): Buffer {
    return this.#get(`${PATH}/${id}`);
  }

  /** The page at a cursor; null: the first. */
  page(cursor: string | null, limit = PAGE_SIZE): Buffer {
    return this.#get(`${PATH}?limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`);
  }

  #get(path: string): Buffer {
    return Buffer.from(`${this.#head('GET', path)}\r\n`, 'latin1');
  }

  #head(method: string, path: string): string {
    const { host } = new URL(this.#target.url);
    return `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${this.#target.secret}\r\n`;
  }
}
