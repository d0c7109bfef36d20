import type { ClientBug, ClientPatch } from './typescript-bugs.ts';

const PACKAGE = 'sdk/python/src/lead_intake';
const SENDING = `${PACKAGE}/_sending.py`;
const DATABASE = `${PACKAGE}/outbox/_database.py`;

const dripsAreWaitedFor: Pick<ClientBug, 'name' | 'caughtBy' | 'says'> = {
  name: 'a response that arrives byte by byte has no deadline',
  caughtBy: 'deadlines/dripping-until-the-deadline',
  says: 'has not reported within',
};

export const PYTHON_BUGS: readonly ClientBug[] = [
  {
    name: 'a base URL with /v1 is accepted',
    caughtBy: 'configuration/not-a-base-url',
    says: 'not refused',
    patches: [{ file: `${PACKAGE}/_configuration.py`, find: 'or _PATH_OF_API.search(base_url)', put: '' }],
  },
  {
    ...dripsAreWaitedFor,
    patches: [
      {
        file: `${PACKAGE}/_client.py`,
        find: 'cancellation.wait(timeout, exchange)',
        put: 'cancellation.wait(600, exchange)',
      },
      {
        file: `${PACKAGE}/_client.py`,
        find: 'if time.monotonic() > end or cancellation.is_cancelled:',
        put: 'if False:',
      },
    ],
  },
];

export const PYTHON_ASYNCIO_BUGS: readonly ClientBug[] = [
  {
    ...dripsAreWaitedFor,
    patches: [
      { file: `${PACKAGE}/_async_client.py`, find: 'anyio.move_on_after(timeout)', put: 'anyio.move_on_after(None)' },
    ],
  },
  {
    name: 'a cancelled attempt is reported as not written',
    caughtBy: 'cancelling/while-an-answer-is-awaited',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: SENDING, find: 'self._attempts += 1 self._is_open = True', put: 'self._attempts += 1' }],
  },
];

/** A forked process keeps the connections of its parent. */
export const PYTHON_POOL_BUG: readonly ClientPatch[] = [
  {
    file: `${PACKAGE}/_pools.py`,
    find: 'self._inherited.append(self._by_owner) self._by_owner = WeakKeyDictionary()',
    put: 'pass',
  },
];

/** The worker of the outbox does not commit. */
export const PYTHON_OUTBOX_BUG: readonly ClientPatch[] = [
  { file: DATABASE, find: 'self._connection.commit() return changed', put: 'return changed' },
  { file: DATABASE, find: 'self._connection.commit() return rows', put: 'return rows' },
];
