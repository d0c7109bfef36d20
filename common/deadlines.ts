/**
 * Deadlines that depend on each other, and how: a caller's timeout exceeds its callee's, and a stopping process waits longer than requests
 * in flight take. Checked when this module is loaded. Milliseconds.
 */

/** Timeout of a count in Redis; the rest of QUOTA_TIMEOUT_MS is for the gateway itself. */
export const REDIS_TIMEOUT_MS = 200;

/** Timeout of the quota, in Redis or in memory. */
export const QUOTA_TIMEOUT_MS = 250;

/** Timeout of a connection attempt to Redis. */
export const REDIS_CONNECT_MS = 600;

/**
 * Timeout of an unresponsive connection to Redis. Until then the client buffers commands. Much longer than QUOTA_TIMEOUT_MS, so that a
 * pause of the gateway itself does not close a healthy connection.
 */
export const REDIS_SILENCE_MS = 1000;

/** How long a starting gateway waits for its first connection attempt to Redis. */
export const REDIS_OPEN_MS = 2000;

/** How long MongoDB may stay silent within a store call. */
export const STORE_SILENCE_MS = 1500;

/** How long a starting process waits for another process's lock on a SQLite file. It blocks the event loop: nothing is served yet. */
export const SQLITE_BUSY_MS = 2000;

/** How long a SQLite store's health check waits for another process's write lock, after writes have failed. */
export const SQLITE_PROBE_MS = 100;

/** Deadline of a store call, including queueing and retries, and of any single command. */
export const STORE_CALL_MS = 4000;

/** How long a feed call distributes changes before it lists the distributed ones. */
export const MAX_DISTRIBUTION_MS = 100;

/**
 * How long after a studio has ended a creation in it may still be written. A creation reads the studio (an import also the lead and its
 * source), then writes, each within a call's deadline. The database may go on for less than one more.
 */
export const STUDIO_ENDS_MS = 5 * STORE_CALL_MS;

/** Deadline of a request to the core; after it, the outcome is unknown. */
export const CORE_CALL_MS = 5000;

/** How long a gateway caches a key's quotas. */
export const API_KEY_CACHE_MS = 30_000;

/** How soon a changed quota is in force at every gateway. */
const QUOTA_CHANGE_MS = 60_000;

/** The interval of readiness checks, and so the maximum age of their result. */
export const READINESS_CHECK_INTERVAL_MS = 1000;

/** Timeout of the gateway's health check of the core. */
export const CORE_HEALTH_MS = 1000;

/** Interval and timeout of pings on a connection to the core. */
export const CORE_PING_INTERVAL_MS = 10_000;
export const CORE_PING_TIMEOUT_MS = 2000;

/** How long `doctor` waits for a core or a gateway. */
export const DOCTOR_MS = 5000;

/** How long a call waits for a connection to the core: first for the ping of the previous one, then for a new one. */
export const CORE_CONNECT_MS = 4000;

/** How long a client may take to send a request, at the gateway and at the core. */
export const REQUEST_ARRIVAL_MS = 10_000;

/** The maximum deadline that a caller of the core may set. */
export const MAX_CALL_MS = 60_000;

/** The maximum deadline of a streaming call, such as an export. It may also have none. */
export const MAX_EXPORT_MS = 86_400_000;

/** The maximum drain, in which a stopping process is not ready but still serves. */
export const MAX_DRAIN_MS = 60_000;

/** How long after its drain a process may take to stop. Then it exits with status 1. */
export const STOP_MS = 10_000;

/** How long a gateway that has closed its port waits for requests in flight. */
export const GATEWAY_AFTER_CLOSE_MS = 8600;

/** How long before GATEWAY_AFTER_CLOSE_MS ends a request that is still arriving gets its answer: too late. */
export const LAST_ANSWER_MS = 500;

/** How long a stopping gateway waits for its last requests to be recorded. */
export const REQUEST_LOG_CLOSE_MS = 200;

/** How long a core that has closed its port waits for requests in flight. */
export const CORE_AFTER_CLOSE_MS = 4250;

/** The relay's timeouts: for resolving an endpoint's name and again for connecting to it, and for the whole request. */
export const RELAY_CONNECT_MS = 5000;
export const RELAY_REQUEST_MS = 15_000;

/** How long a stopping relay waits for requests in flight. Requests that are cut off are sent again later. */
export const RELAY_AFTER_STOP_MS = 4000;

/** How long a closing store waits for calls in flight: a call, and the timeout of its last command. */
export const STORE_CLOSE_MS = STORE_CALL_MS + STORE_SILENCE_MS;

/** How long a closing connection to MongoDB may take before it is cut. */
export const STORE_DISCONNECT_MS = 200;

/** How long a stopping process waits for its last spans to be exported. */
export const TRACES_CLOSE_MS = 1000;

/** The maximum delay of a Node timer. A timer with a longer delay fires immediately. */
export const TIMER_MS = 2 ** 31 - 1;

/** How long Node tries one address of a host before the next one. */
const NEXT_ADDRESS_MS = 500;

assertLess({ MAX_DISTRIBUTION_MS }, { STORE_CALL_MS }, 'a call that distributes also lists');
assertLess(
  { API_KEY_CACHE_MS, CORE_CALL_MS },
  { QUOTA_CHANGE_MS },
  'a changed quota is in force at every gateway in time',
);
assertLess({ REDIS_TIMEOUT_MS }, { QUOTA_TIMEOUT_MS }, 'a count times out before the quota does');
assertLess({ QUOTA_TIMEOUT_MS }, { REDIS_SILENCE_MS }, 'a late count does not close the connection');
assertLess({ NEXT_ADDRESS_MS }, { REDIS_CONNECT_MS }, 'the second address of Redis is tried, too');
assertLess(
  { REDIS_SILENCE_MS, REDIS_CONNECT_MS },
  { REDIS_OPEN_MS },
  'a gateway that starts tries the next sentinel, too',
);
assertLess({ STORE_SILENCE_MS, retry: STORE_SILENCE_MS }, { STORE_CALL_MS }, 'a command that timed out can be retried');
assertLess(
  { SQLITE_PROBE_MS },
  { CORE_HEALTH_MS },
  'a health check is answered while another process writes to the file',
);
assertLess({ STORE_CALL_MS }, { CORE_CALL_MS }, "the core's error about its store reaches the gateway");
assertLess(
  { CORE_CALL_MS },
  { REQUEST_ARRIVAL_MS },
  'a client that waits for its response does not count as a slow sender',
);
assertLess({ CORE_HEALTH_MS }, { CORE_CALL_MS }, 'a health check fails before a call does');
assertLess({ CORE_HEALTH_MS }, { CORE_PING_TIMEOUT_MS }, 'a core that cannot serve is known by its health first');
assertLess({ CORE_PING_TIMEOUT_MS }, { CORE_PING_INTERVAL_MS }, 'at most one ping is pending');
assertLess(
  { CORE_PING_TIMEOUT_MS },
  { CORE_CONNECT_MS },
  'a connection can be made after the ping of the previous one timed out',
);
assertLess({ CORE_CONNECT_MS }, { CORE_CALL_MS }, 'a call without a connection fails before the call deadline');
assertLess({ STORE_CALL_MS }, { DOCTOR_MS }, 'a core whose store does not respond can report it to `doctor`');
assertLess({ CORE_CALL_MS }, { MAX_CALL_MS }, "the core accepts the gateway's deadline");
assertLess({ MAX_CALL_MS }, { MAX_EXPORT_MS }, 'an export accepts every deadline that a call accepts');
assertLess({ MAX_EXPORT_MS }, { TIMER_MS }, 'a timer can measure it');
assertLess(
  { QUOTA_TIMEOUT_MS, CORE_CALL_MS, refund: QUOTA_TIMEOUT_MS },
  { GATEWAY_AFTER_CLOSE_MS },
  'a stopping gateway answers every accepted request',
);
assertLess(
  { lookUp: STORE_CALL_MS, QUOTA_TIMEOUT_MS, STORE_CALL_MS, refund: QUOTA_TIMEOUT_MS },
  { GATEWAY_AFTER_CLOSE_MS },
  'a stopping gateway also answers a request whose key is not cached',
);
assertLess({ GATEWAY_AFTER_CLOSE_MS, REQUEST_LOG_CLOSE_MS, TRACES_CLOSE_MS }, { STOP_MS }, 'a gateway stops in time');
assertLess({ STORE_CALL_MS }, { CORE_AFTER_CLOSE_MS }, 'a stopping core answers every accepted request');
assertLess({ TRACES_CLOSE_MS }, { STORE_CLOSE_MS }, 'the last spans are exported while the store closes');
assertLess(
  { RELAY_CONNECT_MS, handshake: RELAY_CONNECT_MS },
  { RELAY_REQUEST_MS },
  'a request can follow its connection',
);
assertLess({ RELAY_AFTER_STOP_MS, CORE_CALL_MS }, { STOP_MS }, 'a relay stops in time');
assertLess({ CORE_AFTER_CLOSE_MS, STORE_CLOSE_MS, STORE_DISCONNECT_MS }, { STOP_MS }, 'a core stops in time');

/** @throws Error unless the sum of the parts is less than the bound */
function assertLess(
  parts: Readonly<Record<string, number>>,
  bound: Readonly<Record<string, number>>,
  why: string,
): void {
  const sum = Object.values(parts).reduce((total, ms) => total + ms, 0);
  const [[name, ms]] = Object.entries(bound) as [[string, number]];
  if (sum >= ms) throw new Error(`deadlines: ${Object.keys(parts).join(' + ')} (${sum}) < ${name} (${ms}): ${why}`);
}
