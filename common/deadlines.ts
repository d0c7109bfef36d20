/**
 * Every deadline that another one depends on, in milliseconds, and how they depend on each other: who asks waits longer than
 * who is asked, and who stops waits longer than what is under way. Loading this file holds one against the other.
 */

/** How long Redis may take to count; the rest of QUOTA_ANSWER_MS is for the gateway itself. */
export const REDIS_ANSWER_MS = 200;

/** How long the quota may take to answer, whatever the place where it is counted does. */
export const QUOTA_ANSWER_MS = 250;

/** When connecting to Redis is given up. */
export const REDIS_CONNECT_MS = 600;

/**
 * When a silent connection to Redis is given up. Until then each command waits in the client's memory for its answer. Much
 * longer than anybody waits for a count, so that the gateway's own pauses do not cost it a sound connection.
 */
export const REDIS_SILENCE_MS = 1000;

/** How long MongoDB may be silent within a call of the store. */
export const STORE_SILENCE_MS = 1500;

/** How long a write of SQLite waits for another process that is writing. Waiting blocks the whole process. */
export const SQLITE_BUSY_MS = 2000;

/** How long one call of the store may take, its turn and its repetitions included, and any command. */
export const STORE_CALL_MS = 4000;

/** How long a request to the core may take before its outcome counts as unknown. */
export const CORE_CALL_MS = 5000;

/** How long a gateway counts a key's requests by what it knows of the key's quotas, before it asks the core again. */
export const API_KEY_CACHE_MS = 30_000;

/** When another quota of a key or a studio holds at every gateway at the latest. */
const QUOTA_CHANGE_MS = 60_000;

/** The time from one look whether what a process needs is there to the next. What is said of readiness is as old as that. */
export const READINESS_LOOK_MS = 1000;

/** How long the core may take to say whether it is ready, to the gateway. */
export const CORE_HEALTH_MS = 1000;

/** How often the gateway asks a connection to the core for a sign of life, and how long that may take. */
export const CORE_PING_EVERY_MS = 10_000;
export const CORE_PING_ANSWER_MS = 2000;

/** How long the doctor waits for a core or a gateway. */
export const DOCTOR_MS = 5000;

/** How long a call to the core may wait for a connection: for one that is made, and before that for a sign of life of the one before. */
export const CORE_CONNECT_MS = 4000;

/** How long a request may take to arrive, at the gateway and at the core. */
export const REQUEST_ARRIVAL_MS = 10_000;

/** The longest deadline that a caller of the core may ask for. */
export const MAX_CALL_MS = 60_000;

/** The longest one for an export, which may also have none. */
export const MAX_EXPORT_MS = 86_400_000;

/** How long a process that stops may say so, and serve on, before it closes its port. */
export const MAX_DRAIN_MS = 60_000;

/** How long a process may take to stop, from the end of its drain, before it leaves with a fault. */
export const STOP_MS = 10_000;

/** How long a gateway that has closed its port waits for what is under way. */
export const GATEWAY_AFTER_CLOSE_MS = 8750;

/** How long a core that has closed its port waits for what is under way. */
export const CORE_AFTER_CLOSE_MS = 4250;

/** How long a store that is being closed waits for what is under way: a call, and the silence that its last command meets. */
export const STORE_CLOSE_MS = STORE_CALL_MS + STORE_SILENCE_MS;

/** How long a process that stops waits for its last spans to be taken. */
export const TRACES_CLOSE_MS = 1000;

/** The longest time that a timer of Node waits; one for a longer time goes off at once. */
const TIMER_MS = 2 ** 31 - 1;

/** Node gives the first of a host's addresses so long before it tries the next. */
const NEXT_ADDRESS_MS = 500;

isLess(
  { API_KEY_CACHE_MS, CORE_CALL_MS },
  { QUOTA_CHANGE_MS },
  'a quota that was changed holds at every gateway in time',
);
isLess({ REDIS_ANSWER_MS }, { QUOTA_ANSWER_MS }, 'a count is given up before the quota has to answer');
isLess({ QUOTA_ANSWER_MS }, { REDIS_SILENCE_MS }, 'a count that is late does not cost the connection');
isLess({ NEXT_ADDRESS_MS }, { REDIS_CONNECT_MS }, 'the second address of Redis has its turn, too');
isLess({ STORE_SILENCE_MS, again: STORE_SILENCE_MS }, { STORE_CALL_MS }, 'a call that met silence fits in once more');
isLess({ SQLITE_BUSY_MS }, { STORE_CALL_MS }, 'SQLite answers as soon as MongoDB');
isLess({ STORE_CALL_MS }, { CORE_CALL_MS }, "the core's word on its store reaches the gateway");
isLess({ CORE_CALL_MS }, { REQUEST_ARRIVAL_MS }, 'who waits for an answer is not taken for one who sends slowly');
isLess(
  { CORE_HEALTH_MS },
  { CORE_CALL_MS },
  'who asks whether the core serves knows it before who asks it for something',
);
isLess({ CORE_PING_ANSWER_MS }, { CORE_PING_EVERY_MS }, 'one sign of life is waited for at a time');
isLess(
  { CORE_PING_ANSWER_MS },
  { CORE_CONNECT_MS },
  'a connection can be made after the one before gave no sign of life',
);
isLess({ CORE_CONNECT_MS }, { CORE_CALL_MS }, 'who has no connection is told before who has no answer');
isLess({ STORE_CALL_MS }, { DOCTOR_MS }, 'a core whose store is silent can say so to the doctor');
isLess({ CORE_CALL_MS }, { MAX_CALL_MS }, "the gateway's deadline is one that the core takes");
isLess({ MAX_CALL_MS }, { MAX_EXPORT_MS }, 'whatever deadline a caller has for a call does for an export');
isLess({ MAX_EXPORT_MS }, { TIMER_MS }, 'a timer can wait for it');
isLess(
  { QUOTA_ANSWER_MS, CORE_CALL_MS, putBack: QUOTA_ANSWER_MS },
  { GATEWAY_AFTER_CLOSE_MS },
  'a gateway that stops answers what it took on',
);
isLess(
  { lookUp: STORE_CALL_MS, QUOTA_ANSWER_MS, STORE_CALL_MS, putBack: QUOTA_ANSWER_MS },
  { GATEWAY_AFTER_CLOSE_MS },
  'so it does for a key that it does not know yet',
);
isLess({ GATEWAY_AFTER_CLOSE_MS, TRACES_CLOSE_MS }, { STOP_MS }, 'a gateway stops in time');
isLess({ STORE_CALL_MS }, { CORE_AFTER_CLOSE_MS }, 'a core that stops answers what it took on');
isLess({ TRACES_CLOSE_MS }, { STORE_CLOSE_MS }, 'the last spans are sent while the store is closed');
isLess({ CORE_AFTER_CLOSE_MS, STORE_CLOSE_MS }, { STOP_MS }, 'a core stops in time');

/** @throws Error when what comes one after the other takes as long as the bound, or longer */
function isLess(parts: Readonly<Record<string, number>>, bound: Readonly<Record<string, number>>, why: string): void {
  const sum = Object.values(parts).reduce((total, ms) => total + ms, 0);
  const [[name, ms]] = Object.entries(bound) as [[string, number]];
  if (sum >= ms) throw new Error(`deadlines: ${Object.keys(parts).join(' + ')} (${sum}) < ${name} (${ms}): ${why}`);
}
