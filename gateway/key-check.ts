import { assert } from '../common/invariants.ts';
import type { AuthenticateApiKeyResponse } from '../proto/gen/leadintake/v1/api_key_pb.ts';

/** The API key of a request, valid or not, and its owner. */
export interface PresentedKey {
  /** Hash of the secret; 32 bytes. */
  readonly secretSha256: Uint8Array;
  readonly secretHint: string;
  readonly requestId: string;
  readonly studioId: string;
  readonly caller: AuthenticateApiKeyResponse;
}

/**
 * The check of a request's key. A key is `remembered` if its owner was found before the request came, and `checked` if the
 * core has validated it since, or does so with the call under way. The quota counts a `counted` request with a remembered
 * key, and a `complete` one with a checked key, in these windows.
 */
export type KeyCheck =
  | { readonly name: 'unread'; readonly key?: undefined; readonly windows?: undefined }
  | { readonly name: 'remembered' | 'checked'; readonly key: PresentedKey; readonly windows?: undefined }
  | { readonly name: 'counted' | 'complete'; readonly key: PresentedKey; readonly windows: readonly number[] };

export const UNREAD: KeyCheck = { name: 'unread', key: undefined, windows: undefined };

export type KeyEvent =
  | { readonly name: 'remembered' | 'checked'; readonly key: PresentedKey }
  | { readonly name: 'counted'; readonly windows: readonly number[] }
  | { readonly name: 'sent' | 'keyProblem' | 'uncounted' | 'problem' };
export type FoundKey = Extract<KeyEvent, { readonly key: PresentedKey }>;

const to = (name: KeyCheck['name'], ...does: ('lookUp' | 'forget' | 'refund' | 'hold')[]) => ({ name, does });

/** In such a state the event does not come. */
const NO = undefined;

/**
 * The order of checks: the key, its scope, the quota, then the body, and what the core knows. A problem is answered once what
 * stands beside the next state is done, or by the outcome of `lookUp`, which is the next event.
 *
 * @rule 7.order 8.counted
 */
const TRANSITIONS = {
  // The cache knows the owner of the key, or a look-up that began before the request came.
  remembered: { unread: to('remembered'), remembered: NO, checked: NO, counted: NO, complete: NO },
  // A look-up that began since has found the owner.
  checked: { unread: to('checked'), remembered: NO, checked: NO, counted: NO, complete: NO },
  // The key has the scope, and the quota counts the request.
  counted: { unread: NO, remembered: to('counted'), checked: to('complete'), counted: NO, complete: NO },
  // The core is called, and validates the key first.
  sent: { unread: NO, remembered: to('checked'), checked: NO, counted: to('complete'), complete: to('complete') },
  // The core has refused the key. The next request with it is not counted before a look-up.
  keyProblem: {
    unread: to('unread', 'hold'),
    remembered: NO,
    checked: to('checked', 'forget', 'hold'),
    counted: NO,
    complete: to('checked', 'forget', 'refund', 'hold'),
  },
  // It costs the core nothing, or a key would make it work without bound.
  uncounted: { unread: to('unread'), remembered: to('remembered'), checked: to('checked'), counted: NO, complete: NO },
  // A problem of the key precedes it, which only the core knows. Refusals that no quota counts are slowed down.
  problem: {
    unread: to('unread'),
    remembered: to('remembered', 'lookUp'),
    checked: to('checked', 'hold'),
    counted: to('counted', 'lookUp'),
    complete: to('complete'),
  },
} satisfies Record<KeyEvent['name'], Record<KeyCheck['name'], ReturnType<typeof to> | undefined>>;

/** Returns the next state of a check, and what to do. */
export function next(check: KeyCheck, event: KeyEvent) {
  const transition = TRANSITIONS[event.name][check.name];
  assert(transition !== undefined, 'key_check_in_order');
  const { name, does } = transition;
  const key = 'key' in event ? event.key : check.key;
  const windows = 'windows' in event ? event.windows : check.windows;
  return { check: { name, key, windows: does.includes('refund') ? undefined : windows } as KeyCheck, does };
}
