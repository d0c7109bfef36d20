import { textOfHash } from '../../common/rules/key-secret.ts';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { CoreClient } from '../core/core-client.ts';
import { isOfKey } from '../problems.ts';
import type { PresentedKey, Sender } from '../request.ts';

/** `isChecked`: by a look-up that began after the request had come. */
export type FoundKey = Pick<PresentedKey, 'caller' | 'isChecked'>;

interface LookUp {
  readonly answer: Promise<AuthenticateApiKeyResponse>;
  /** The one after it, for all requests that came meanwhile. */
  next?: Promise<AuthenticateApiKeyResponse>;
}

/**
 * Looks up keys at the core, each once at a time: no quota counts the requests with a key that is not valid, or lacks the
 * scope, and anybody can repeat one on thousands of connections. No request is refused by what was so before it came. One
 * that waits for a look-up without an answer gets the Problem of that.
 */
export class KeyLookUps {
  readonly #core: Pick<CoreClient, 'authenticate'>;
  /** By the hash of the key. */
  readonly #underWay = new Map<string, LookUp>();
  #waiting = 0;

  constructor(core: Pick<CoreClient, 'authenticate'>) {
    this.#core = core;
  }

  /** The number of requests that wait for look-ups. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Finds the owner of a key, who may be the one that it had when an earlier request came. */
  find(sender: Sender): Promise<FoundKey> {
    return this.#count(this.#find(sender));
  }

  /** Rejects unless the key is valid now. */
  check(sender: Sender): Promise<AuthenticateApiKeyResponse> {
    return this.#count(this.#check(sender));
  }

  async #find(sender: Sender): Promise<FoundKey> {
    const underWay = this.#underWay.get(textOfHash(sender.secretSha256));
    if (underWay) {
      const caller = await unlessOfKey(underWay.answer);
      if (caller) return { caller, isChecked: false };
      underWay.next ??= this.#begin(sender);
    }
    return { caller: await (underWay?.next ?? this.#begin(sender)), isChecked: true };
  }

  #check(sender: Sender): Promise<AuthenticateApiKeyResponse> {
    const underWay = this.#underWay.get(textOfHash(sender.secretSha256));
    if (!underWay) return this.#begin(sender);
    underWay.next ??= unlessOfKey(underWay.answer).then(() => this.#begin(sender));
    return underWay.next;
  }

  async #count<Found>(found: Promise<Found>): Promise<Found> {
    this.#waiting += 1;
    try {
      return await found;
    } finally {
      this.#waiting -= 1;
    }
  }

  #begin(sender: Sender): Promise<AuthenticateApiKeyResponse> {
    const name = textOfHash(sender.secretSha256);
    const lookUp: LookUp = { answer: this.#core.authenticate(sender) };
    this.#underWay.set(name, lookUp);
    const end = () => {
      if (this.#underWay.get(name) === lookUp) this.#underWay.delete(name);
    };
    lookUp.answer.then(end, end);
    return lookUp.answer;
  }
}

/** Undefined where the answer is a problem of the key. */
const unlessOfKey = <Answer>(answer: Promise<Answer>): Promise<Answer | undefined> =>
  answer.catch((problem) => {
    if (!isOfKey(problem)) throw problem;
    return undefined;
  });
