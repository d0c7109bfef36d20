import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { BrokenInvariant } from '../../common/invariants.ts';
import { type KeyCheck, type KeyEvent, next } from '../../gateway/key-check.ts';
import { AuthenticateApiKeyResponseSchema } from '../../proto/gen/leadintake/v1/api_key_pb.ts';

const caller = create(AuthenticateApiKeyResponseSchema);
const key = { secretSha256: new Uint8Array(32), secretHint: 'abcd', requestId: 'one', studioId: 'studio', caller };
const windows = [1, 2];

const STATES: { readonly [Kind in KeyCheck['kind']]: KeyCheck & { readonly kind: Kind } } = {
  unread: { kind: 'unread' },
  remembered: { kind: 'remembered', key },
  checked: { kind: 'checked', key },
  counted: { kind: 'counted', key, windows },
  complete: { kind: 'complete', key, windows },
};

const EVENTS: { readonly [Kind in KeyEvent['kind']]: KeyEvent } = {
  remembered: { kind: 'remembered', key },
  checked: { kind: 'checked', key },
  counted: { kind: 'counted', windows },
  sent: { kind: 'sent' },
  keyProblem: { kind: 'keyProblem' },
  uncounted: { kind: 'uncounted' },
  problem: { kind: 'problem' },
};

/** The next state and the actions, by state and event. */
const TABLE: Readonly<Record<string, readonly [keyof typeof STATES, ...string[]]>> = {
  'unread, remembered': ['remembered'],
  'unread, checked': ['checked'],
  'unread, keyProblem': ['unread', 'hold'],
  'unread, uncounted': ['unread'],
  'unread, problem': ['unread'],

  'remembered, counted': ['counted'],
  'remembered, sent': ['checked'],
  'remembered, uncounted': ['remembered'],
  'remembered, problem': ['remembered', 'lookUp'],

  'checked, counted': ['complete'],
  'checked, keyProblem': ['checked', 'forget', 'hold'],
  'checked, uncounted': ['checked'],
  'checked, problem': ['checked', 'hold'],

  'counted, sent': ['complete'],
  'counted, problem': ['counted', 'lookUp'],

  'complete, sent': ['complete'],
  'complete, keyProblem': ['checked', 'forget', 'refund', 'hold'],
  'complete, problem': ['complete'],
};

const pairs = Object.values(STATES).flatMap((state) =>
  Object.values(EVENTS).map((event) => ({ state, event, pair: `${state.kind}, ${event.kind}` })),
);

test.each(pairs.filter(({ pair }) => pair in TABLE))(
  'a key check takes this step, with the data of the next state: $pair',
  ({ state, event, pair }) => {
    const [kind = 'unread', ...does] = TABLE[pair] ?? [];
    expect(next(state, event)).toEqual({ check: STATES[kind], does });
  },
);

test.each(pairs.filter(({ pair }) => !(pair in TABLE)))(
  'a key check takes no other step: $pair',
  ({ state, event }) => {
    expect(() => next(state, event)).toThrow(BrokenInvariant);
  },
);
