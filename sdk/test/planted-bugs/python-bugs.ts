import type { ClientBug } from './typescript-bugs.ts';

const PACKAGE = 'sdk/python/src/lead_intake';
const ATTEMPT = `${PACKAGE}/_attempt.py`;
const SENDING = `${PACKAGE}/_sending.py`;
const DATABASE = `${PACKAGE}/outbox/_database.py`;
const POOLS = `${PACKAGE}/_pools.py`;

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
  {
    name: 'the unknown outcome of an earlier attempt is forgotten',
    caughtBy: 'written/unknown-stays-unknown-after-other-refusals',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: SENDING, find: '(self._is_open and not failed.settles_outcome) or', put: '' }],
  },
  {
    name: 'a fault of a header counts as one of the data',
    caughtBy: 'written/unknown-stays-unknown-after-faults-that-are-not-of-the-data',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: ATTEMPT, find: 'and not any(field in FIELDS_NOT_OF_DATA for field in fields)', put: '' }],
  },
  {
    name: 'a certificate that is not trusted is reported as possibly written',
    caughtBy: 'written/no-when-the-certificate-is-not-trusted',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: ATTEMPT, find: 'httpx2.ConnectError,', put: '' }],
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
    name: 'Retry-After is ignored',
    caughtBy: 'retry-after/of-a-quota',
    says: 'ms, not 3000 or more',
    patches: [{ file: `${PACKAGE}/_async_client.py`, find: 'await anyio.sleep(', put: '(' }],
  },
  {
    name: 'a cancelled attempt is reported as not written',
    caughtBy: 'cancelling/while-an-answer-is-awaited',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: SENDING, find: 'self._attempts += 1 self._is_open = True', put: 'self._attempts += 1' }],
  },
];

/** Faults of one client in several processes and event loops; `caughtBy` is what uses it. */
export const PYTHON_POOL_BUGS: readonly ClientBug[] = [
  {
    name: 'a forked process keeps the connections of its parent',
    caughtBy: 'forks',
    // Either a response of another process, or a failed attempt.
    says: '',
    patches: [
      {
        file: POOLS,
        find: 'self._inherited.append(self._by_owner) self._by_owner = WeakKeyDictionary()',
        put: 'pass',
      },
    ],
  },
  {
    name: 'event loops share connections',
    caughtBy: 'event loops, one after the other',
    says: '',
    patches: [{ file: POOLS, find: 'owner = self._owner() http', put: 'owner = _PROCESS\n        http' }],
  },
];

/** Faults of the outbox for Python, on connections of any configuration. */
export const PYTHON_OUTBOX_BUGS: readonly Omit<ClientBug, 'caughtBy'>[] = [
  {
    name: 'the worker does not commit',
    says: 'to deeply equal',
    patches: [
      { file: DATABASE, find: 'self._connection.commit() return changed', put: 'return changed' },
      {
        file: DATABASE,
        find: 'self._connection.commit() return rows',
        put: 'return rows',
      },
    ],
  },
  {
    name: 'rows are assumed to be tuples',
    says: 'Command failed',
    patches: [{ file: DATABASE, find: 'row.values() if isinstance(row, dict) else row', put: 'row' }],
  },
];
