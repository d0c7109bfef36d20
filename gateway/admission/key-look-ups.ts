import { textOfHash } from '../../common/rules/key-secret.ts';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { CoreClient } from '../core/core-client.ts';
import { problemEvent } from '../problems.ts';
import type { Sender } from '../request.ts';

interface LookUp {
  readonly answer: Promise<AuthenticateApiKeyResponse>;
  /** The look-up after this one, shared by all requests that came meanwhile. */
  next?: Promise<AuthenticateApiKeyResponse>;
}

/**
 * Looks up keys at the core, with one look-up per key at a time. No quota counts requests with an invalid key or a missing scope, and
 * anybody can repeat such a request on thousands of connections. A key is never refused by a look-up that began before the request came. If
 * the core does not answer a look-up, all requests that share it fail.
 */
export class KeyLookUps {
  readonly #authenticate: CoreClient['authenticate'];
  /** By hash of the key. */
  readonly #inFlight = new Map<string, LookUp>();
  #waiting = 0;

  constructor(authenticate: CoreClient['authenticate']) {
    this.#authenticate = authenticate;
  }

  /** The number of requests that wait for look-ups. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Finds the owner of a key. The result is `remembered` if a look-up found it that began earlier, unless the key must be checked. */
  async find(sender: Sender, mustCheck = false) {
    this.#waiting += 1;
    try {
      const earlier = this.#inFlight.get(textOfHash(sender.secretSha256));
      if (!earlier) return { kind: 'checked', caller: await this.#begin(sender) } as const;
      const caller = await earlier.answer.catch((problem) => {
        if (problemEvent(problem) !== 'keyProblem') throw problem;
      });
      if (caller && !mustCheck) return { kind: 'remembered', caller } as const;
      earlier.next ??= this.#begin(sender);
      return { kind: 'checked', caller: await earlier.next } as const;
    } finally {
      this.#waiting -= 1;
    }
  }

  #begin(sender: Sender): Promise<AuthenticateApiKeyResponse> {
    const name = textOfHash(sender.secretSha256);
    const answer = this.#authenticate(sender);
    this.#inFlight.set(name, { answer });
    const end = () => {
      if (this.#inFlight.get(name)?.answer === answer) this.#inFlight.delete(name);
    };
    answer.then(end, end);
    return answer;
  }
}
