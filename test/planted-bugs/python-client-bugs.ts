import type { ClientBug } from './client-bugs.ts';

const PACKAGE = 'sdk/python/src/lead_intake';
const SENDING = `${PACKAGE}/_sending.py`;
const DATABASE = `${PACKAGE}/outbox/_database.py`;
const ROWS = `${PACKAGE}/outbox/_rows.py`;

const dripsAreWaitedFor: Pick<ClientBug, 'name' | 'caughtBy' | 'says'> = {
  name: 'a response that arrives byte by byte has no deadline',
  caughtBy: 'deadlines/dripping-until-the-deadline',
  says: 'has not reported within',
};

export const PYTHON_BUGS: readonly ClientBug[] = [
  {
    ...dripsAreWaitedFor,
    patches: [
      { file: `${PACKAGE}/_client.py`, find: 'future.result(seconds)', put: 'future.result()' },
      { file: `${PACKAGE}/_client.py`, find: 'if time.monotonic() > end:', put: 'if False:' },
    ],
  },
  {
    name: 'the unknown outcome of an earlier attempt is forgotten',
    caughtBy: 'written/unknown-stays-unknown-after-other-refusals',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: SENDING, find: '(self._is_open and not failed.settles_outcome) or', put: '' }],
  },
  {
    name: 'the deadline depends on the clock of the machine',
    caughtBy: 'clocks/set-forward',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: SENDING, find: 'import time\n', put: 'import time; time.monotonic = time.time\n' }],
  },
];

export const PYTHON_ASYNCIO_BUGS: readonly ClientBug[] = [
  {
    ...dripsAreWaitedFor,
    patches: [
      { file: `${PACKAGE}/_async_client.py`, find: 'anyio.fail_after(timeout)', put: 'anyio.fail_after(None)' },
    ],
  },
  {
    name: 'Retry-After is ignored',
    caughtBy: 'retry-after/of-a-quota',
    says: 'ms, not 3000 or more',
    patches: [{ file: `${PACKAGE}/_async_client.py`, find: 'await anyio.sleep(', put: '(' }],
  },
];

/** Faults of the outbox for Python; `caughtBy` is an expectation of its own suite. */
export const PYTHON_OUTBOX_BUGS: readonly ClientBug[] = [
  {
    name: 'data is kept after delivery',
    caughtBy: 'does what its README shows: stores, sends, and lists what needs attention',
    says: 'to deeply equal',
    patches: [
      { file: ROWS, find: 'lead_id = ?, settled_at = ?, capture = NULL,', put: 'lead_id = ?, settled_at = ?,' },
    ],
  },
  {
    name: 'the worker does not commit',
    caughtBy: 'accepts connections of any configuration, and has committed when it returns',
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
    caughtBy: 'accepts connections of any configuration, and has committed when it returns',
    says: 'Command failed',
    patches: [{ file: DATABASE, find: 'row.values() if isinstance(row, dict) else row', put: 'row' }],
  },
  {
    name: 'other data for a waiting idempotency key is ignored',
    caughtBy: 'refuses invalid calls before anything is written',
    says: 'to deeply equal',
    patches: [{ file: ROWS, find: 'stored_text is not None and', put: 'False and' }],
  },
  {
    name: 'the oldest lead is sent first, regardless of its attempts',
    caughtBy: 'sends the leads with the fewest attempts first',
    says: 'to match object',
    patches: [{ file: ROWS, find: 'ORDER BY attempts, created_at', put: 'ORDER BY created_at' }],
  },
  {
    name: 'data changed while its lead was sent is erased',
    caughtBy: 'keeps a row that was changed while its lead was sent',
    says: 'to match',
    patches: [
      {
        file: ROWS,
        find: `AND state = 'waiting' AND next_attempt_at = ?",
            *values,
            lead.key,
            lead.lease,`,
        put: `AND state = 'waiting'", *values, lead.key,`,
      },
    ],
  },
  {
    name: 'a response of any length is read',
    caughtBy: 'rejects a response that is too long, or has no lead in it',
    says: 'to deeply equal',
    patches: [{ file: `${PACKAGE}/_attempt.py`, find: 'return len(self.bytes) > _MAX_CONTENT', put: 'return False' }],
  },
];
