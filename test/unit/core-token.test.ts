import { Code, ConnectError } from '@connectrpc/connect';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { presentToken } from '../../common/core-connection.ts';
import { times } from '../support/builders.ts';
import { aReplacedToken } from '../support/replaced-token.ts';

// These tests are about the token that a process presents after its token file was replaced.

const [FORMER, NEWEST] = ['former-token-of-gateway-and-core', 'newest-token-of-gateway-and-core'];

/** How long the former token is presented; milliseconds. */
const PRESENT_FORMER_MS = 10_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

/** Makes calls from a process that started with FORMER and whose token file now has NEWEST. */
async function aProcess() {
  const token = await aReplacedToken(FORMER, NEWEST);
  return {
    /** Calls a core that accepts some tokens, and returns the tokens it was shown. */
    async call(accepted: readonly string[], refusal: Code = Code.Unauthenticated) {
      const shown: (string | undefined)[] = [];
      const answer = async ({ header }: { readonly header: Headers }) => {
        shown.push(header.get('authorization')?.replace('Bearer ', ''));
        if (!accepted.includes(shown.at(-1) ?? '')) throw new ConnectError('refused', refusal);
        return { stream: false };
      };
      const call = presentToken(token)(answer as never);
      const isServed = await call({ stream: false, header: new Headers() } as never).then(
        () => true,
        () => false,
      );
      return { isServed, shown };
    },
  };
}

// @proves secrets-3
test('a call succeeds if its core accepts either token, in any order of cores, at any time', async () => {
  const { call } = await aProcess();
  const cores = [[FORMER], [NEWEST], [FORMER, NEWEST]].flatMap((accepted) =>
    [0, PRESENT_FORMER_MS / 2, PRESENT_FORMER_MS].map((pauseMs) => ({ accepted, pauseMs })),
  );
  const orders = cores.flatMap((one) => cores.flatMap((two) => cores.map((three) => [one, two, three])));
  for (const { accepted, pauseMs } of orders.flat()) {
    vi.advanceTimersByTime(pauseMs);
    const { isServed, shown } = await call(accepted);
    expect([isServed, shown.length]).toEqual([true, accepted.includes(shown[0] ?? '') ? 1 : 2]);
    // Once its core knows the new token, a caller is identified by it.
    if (pauseMs === PRESENT_FORMER_MS) expect(shown[0]).toBe(NEWEST);
  }
});

test('a call is retried with the other token only if the first one is refused', async () => {
  const { call } = await aProcess();
  expect(await call([], Code.PermissionDenied)).toEqual({ isServed: false, shown: [NEWEST] });
  expect(await call([], Code.Internal)).toEqual({ isServed: false, shown: [NEWEST] });
  expect(await call([])).toEqual({ isServed: false, shown: [NEWEST, FORMER] });
});

// @proves secrets-3
test('calls refused at the same time are retried with the same token', async () => {
  const { call } = await aProcess();
  for (const [accepted, refused] of [
    [FORMER, NEWEST],
    [NEWEST, FORMER],
  ]) {
    const calls = await Promise.all(times(3, () => call([accepted as string])));
    expect(calls).toEqual(times(3, () => ({ isServed: true, shown: [refused, accepted] })));
  }
});
