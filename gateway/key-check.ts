import { assert } from '../common/invariants.ts';
import type { AuthenticateApiKeyResponse } from '../proto/gen/leadintake/v1/api_key_pb.ts';

/** A request's API key, valid or not, and its owner. */
export interface PresentedKey {
  /** Hash of the secret; 32 bytes. */
  readonly secretSha256: Uint8Array;
  readonly secretHint: string;
  readonly requestId: string;
  readonly studioId: string;
  readonly caller: AuthenticateApiKeyResponse;
}

/**
 * The check of a request's key. A key is `remembered` if its owner was found before the request came. It is `checked` if the core has
 * validated it since, or does so with the current call. Once the request is counted, `remembered` becomes `counted`, and `checked` becomes
 * `complete`.
 */
export type KeyCheck =
  | { readonly kind: 'unread'; readonly key?: undefined; readonly windows?: undefined }
  | { readonly kind: 'remembered' | 'checked'; readonly key: PresentedKey; readonly windows?: undefined }
  | { readonly kind: 'counted' | 'complete'; readonly key: PresentedKey; readonly windows: readonly number[] };

export const UNREAD: KeyCheck = { kind: 'unread', key: undefined, windows: undefined };

/** The event that a key's owner was found. */
export interface FoundKey {
  readonly kind: 'remembered' | 'checked';
  readonly key: PresentedKey;
}

export type KeyEvent =
  | FoundKey
  | { readonly kind: 'counted'; readonly windows: readonly number[] }
  | { readonly kind: 'sent' | 'keyProblem' | 'uncounted' | 'problem' };

/** The state after an event, and the resulting actions. */
interface Transition {
  readonly kind: KeyCheck['kind'];
  readonly does: readonly ('lookUp' | 'forget' | 'refund' | 'hold')[];
}

const to = (kind: Transition['kind'], ...does: Transition['does']): Transition => ({ kind, does });

/** The event cannot occur in this state. */
const NO = undefined;

/**
 * The order of checks: the key, its scope, the quota, the body, then whatever the core knows. A problem is answered after the actions that
 * follow the next state. After `lookUp`, the outcome of the look-up is the next event.
 *
 * @rule 7.order 8.counted
 */
const TRANSITIONS: Record<KeyEvent['kind'], Record<KeyCheck['kind'], Transition | undefined>> = {
  // The owner comes from the cache, or from a look-up that began before the request came.
  remembered: { unread: to('remembered'), remembered: NO, checked: NO, counted: NO, complete: NO },
  // A look-up that began later has found the owner.
  checked: { unread: to('checked'), remembered: NO, checked: NO, counted: NO, complete: NO },
  // The key has the scope, and the quota counts the request.
  counted: { unread: NO, remembered: to('counted'), checked: to('complete'), counted: NO, complete: NO },
  // The core is called, and validates the key first.
  sent: { unread: NO, remembered: to('checked'), checked: NO, counted: to('complete'), complete: to('complete') },
  // The core has refused the key, so the next request with it is looked up before it is counted.
  keyProblem: {
    unread: to('unread', 'hold'),
    remembered: NO,
    checked: to('checked', 'forget', 'hold'),
    counted: NO,
    complete: to('checked', 'forget', 'refund', 'hold'),
  },
  // No look-up follows, or a key could make the core work without limit.
  uncounted: { unread: to('unread'), remembered: to('remembered'), checked: to('checked'), counted: NO, complete: NO },
  // Looks up the key first, because only the core knows whether it is invalid. Uncounted refusals are slowed down.
  problem: {
    unread: to('unread'),
    remembered: to('remembered', 'lookUp'),
    checked: to('checked', 'hold'),
    counted: to('counted', 'lookUp'),
    complete: to('complete'),
  },
};

/** Returns the next state of a check, and what to do. */
export function next(check: KeyCheck, event: KeyEvent) {
  const transition = TRANSITIONS[event.kind][check.kind];
  assert(transition !== undefined, 'key_check_in_order');
  const { kind, does } = transition;
  const key = 'key' in event ? event.key : check.key;
  const windows = 'windows' in event ? event.windows : check.windows;
  return { check: { kind, key, windows: does.includes('refund') ? undefined : windows } as KeyCheck, does };
}
