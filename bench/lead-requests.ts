import type { LeadData } from '../src/domain/fingerprint.ts';

/** What requests of a studio carry. */
export interface KeyOfStudio {
  /** The bearer key. */
  readonly secret: string;
  /** A source of the key's studio. */
  readonly sourceId: string;
}

/** Where requests go and what they carry. */
export interface Target extends KeyOfStudio {
  readonly url: string;
}

/** The page that is asked for by whoever wants one of the usual size. */
const PAGE_SIZE = 25;

const PATH = '/v1/integrations/leads';

/** A lead as a form on a website sends it; its contact is nobody else's, as long as its idempotency key is. */
export function captureFor(idempotencyKey: string, sourceId: string): LeadData {
  return {
    displayName: 'Ada Lovelace',
    contact: { type: 'email', value: `${idempotencyKey}@example.org` },
    sourceId,
    note: 'Would like to come on a weekday, after six.',
  };
}

/** Makes the bytes of requests to one target. */
export class LeadRequests {
  readonly #target: Target;
  readonly #creationHead: string;

  constructor(target: Target) {
    this.#target = target;
    this.#creationHead = `${this.#head('POST', PATH)}content-type: application/json\r\n`;
  }

  /** The creation of the lead that belongs to an idempotency key. */
  creation(idempotencyKey: string): Buffer {
    const body = JSON.stringify(captureFor(idempotencyKey, this.#target.sourceId));
    const head = `${this.#creationHead}idempotency-key: ${idempotencyKey}\r\ncontent-length: ${body.length}\r\n\r\n`;
    return Buffer.from(head + body, 'latin1');
  }

  /** One lead. */
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
