import type { DescMethod } from '@bufbuild/protobuf';
import { Code, type ConnectError, createContextKey } from '@connectrpc/connect';
import type { Logger } from 'pino';
import { STORE_CALL_MS } from '../../common/deadlines.ts';
import { Metrics, SIZES } from '../../common/metrics.ts';
import type { Readiness } from '../../common/readiness.ts';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { isRequestId } from '../../common/rules/public-api.ts';
import { Throttle } from '../../common/throttle.ts';
import type { TlsCredentials } from '../../common/tls-credentials.ts';
import type { Tracer } from '../../common/tracing.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import type { Caller } from '../domain/caller.ts';
import { DEFAULT_CONSUMER } from '../domain/consumer.ts';
import { Refusal } from '../domain/refusal.ts';
import type { MeasuredDeliveries } from '../store/port/deliveries.ts';
import type { ReportUnreadable } from '../store/port/faults.ts';
import type { SlowCommands, StoreCommand } from '../store/port/listeners.ts';
import type { Store } from '../store/store.ts';
import { MAX_COUNTED, measureConsumer } from '../usecases/consumers.ts';
import type { Changing } from '../usecases/dependencies.ts';
import { countEndingKeys, ENDING_WITHIN_DAYS } from '../usecases/manage-api-keys.ts';
import type { RetentionObserver, RetentionOutcome } from '../usecases/retain-leads.ts';
import { connectErrorOf } from './refusals.ts';

/** A call, or an item of one, as it is logged, counted and traced. */
export interface Call {
  /** The method's name, preceded by the service's if that is not one of `leadintake.v1`. */
  readonly operation: string;
  /** The caller's id of the request; not logged if it is not a valid one. */
  readonly requestId: string | undefined;
  /** The message; undefined if it was not read. */
  readonly request: object | undefined;
  /** The W3C `traceparent`, if the caller sent one. */
  readonly traceparent: string | undefined;
  /** Undefined: not authenticated. */
  readonly caller: Caller | undefined;
}

/** Returns a call by its method and headers, without its message. @param method undefined: no method of this service */
export function callOf(method: DescMethod | undefined, header: Headers, caller: Caller | undefined): Call {
  return {
    operation: method ? operationOf(method) : 'other',
    requestId: header.get('x-request-id') ?? undefined,
    request: undefined,
    traceparent: header.get('traceparent') ?? undefined,
    caller,
  };
}

function operationOf({ parent, name }: DescMethod): string {
  return parent.file.proto.package === 'leadintake.v1' ? name : `${parent.name}/${name}`;
}

/** Aborted when the call's connection is drained; open-ended calls then end. */
export const connectionDraining = createContextKey<AbortSignal>(new AbortController().signal, {
  description: 'aborted when the connection is drained',
});

/** The outcomes that are failures of the service. */
const FAULTS = new Set(['INTERNAL', 'UNAVAILABLE', 'UNKNOWN']);

/**
 * Executes a call, and logs, counts and traces it. Rejects with the error that the caller gets; the text of a fault is only
 * logged.
 */
export type RunCall = <Response extends object>(
  call: Call,
  body: () => Promise<Response>,
  messageOf?: (response: Response) => object,
) => Promise<Response>;

export function callRunner(log: Logger, metrics?: CoreMetrics, tracer?: Tracer): RunCall {
  const isLogged = log.isLevelEnabled('info');
  return async (
    { operation, request = {}, traceparent, caller, ...call },
    body,
    messageOf = (response) => response,
  ) => {
    const requestId = isRequestId(call.requestId) ? call.requestId : undefined;
    const began = performance.now();
    metrics?.callBegan();
    const span = tracer?.begin(operation, traceparent);
    try {
      const response = await body();
      finish('ok', messageOf(response));
      return response;
    } catch (thrown) {
      const error = connectErrorOf(thrown);
      const isFault = error !== thrown && !(thrown instanceof Refusal);
      if (isFault) log.error({ err: thrown, operation, requestId }, 'call failed');
      const [info] = error.findDetails(ErrorInfoSchema);
      finish(info?.reason ?? nameOf(error.code), info?.metadata ?? {});
      throw error;
    }

    /**
     * @param outcome `ok`, the reason of a refusal, or a status
     * @param response the response, or the metadata of the refusal
     */
    function finish(outcome: string, response: object): void {
      if (!isLogged && !metrics && !span?.isSent) return;
      const durationMs = Math.round((performance.now() - began) * 100) / 100;
      const logged = loggedFieldsOf(request, response);
      const { consumer }: MessageFields = request;
      metrics?.callFinished({ operation, outcome, durationMs, replayed: logged.replayed === true, consumer });
      if (caller) metrics?.callerCalled(caller);
      const attributes = { requestId, caller: caller?.name ?? undefined, operation, outcome, ...logged };
      span?.end({ failed: FAULTS.has(outcome), attributes });
      if (isLogged) log.info({ ...attributes, traceId: span?.traceId, durationMs });
    }
  };
}

/** Logs and counts a refused call, and returns the error that its caller gets. */
export const refused = (run: RunCall, call: Call, reason: Error): Promise<ConnectError> =>
  run<never>(call, () => Promise.reject(reason)).catch((error) => error);

/** Returns the name of a status in logs and metrics, as gRPC writes it: `INVALID_ARGUMENT`. */
const nameOf = (code: Code): string => Code[code].replace(/\B[A-Z]/g, '_$&').toUpperCase();

/** The interval in which a record is logged at most once; milliseconds. */
const LOG_INTERVAL_MS = 3_600_000;

/** The maximum number of records logged in that time, so that damaged data cannot fill the disk. */
const MAX_LOG_LINES = 1000;

/** Logs unreadable records, each at most once per interval. */
export function unreadableRecordLog(log: Logger): ReportUnreadable {
  const throttle = new Throttle(LOG_INTERVAL_MS, MAX_LOG_LINES);
  return ({ kind, studioId, id, field }) => {
    if (!throttle.allow(`${kind} ${studioId} ${id}`)) return;
    log.error({ kind, studioId, id, field }, 'unreadable record');
  };
}

/** A command to the database that takes so long is logged: within an interval each shape once, and only some; milliseconds. */
const [SLOW_COMMAND_MS, SLOW_INTERVAL_MS, MAX_SLOW_SHAPES] = [1000, 60_000, 10];

/** The length of a shape in the log; characters. */
const MAX_SHAPE_LENGTH = 500;

export function slowCommandLog(log: Logger): SlowCommands {
  const throttle = new Throttle(SLOW_INTERVAL_MS, MAX_SLOW_SHAPES);
  return {
    fromMs: SLOW_COMMAND_MS,
    report(shape, durationMs) {
      const command = shape.slice(0, MAX_SHAPE_LENGTH);
      if (throttle.allow(command)) {
        log.warn({ command, durationMs: Math.round(durationMs) }, 'slow command to the database');
      }
    },
  };
}

/** Logs and counts what retention erases. A failure is logged once an hour at most. */
export function retentionObserver(log: Logger, metrics?: CoreMetrics): RetentionObserver {
  const throttle = new Throttle(LOG_INTERVAL_MS);
  return {
    ...(metrics?.retention ?? { time() {}, passed() {} }),
    erased: (studioId, leads) => log.info({ studioId, leads }, 'retention: closed leads erased'),
    failed: (err) => throttle.allow() && log.warn({ err }, 'retention: interrupted; it goes on'),
  };
}

const isId = (value: unknown): boolean => typeof value === 'string' && uuidFault(value) === undefined;

/**
 * All that is logged of requests and responses, by name and by type: valid ids, numbers and booleans. Messages of
 * another method may have text or records in a field of the same name; those are left out.
 */
const LOGGED = {
  studioId: (value) => typeof value === 'string' && crmIdFault(value) === undefined,
  apiKeyId: isId,
  leadId: isId,
  replayed: (value) => typeof value === 'boolean',
  /** The number of leads that an export has sent. */
  leads: Number.isSafeInteger,
} satisfies Record<string, (value: unknown) => boolean>;

type LoggedFields = { readonly [Name in keyof typeof LOGGED]?: string | number | boolean };

/** The fields in which requests name a studio. */
interface StudioFields {
  readonly studioId?: string;
  readonly studio?: { readonly id: string };
  readonly member?: { readonly studioId: string };
  readonly leadSource?: { readonly studioId: string };
}

export function studioIdIn({ studioId, studio, member, leadSource }: StudioFields): string | undefined {
  return studioId ?? studio?.id ?? member?.studioId ?? leadSource?.studioId;
}

/** The fields of messages in which these are found; not validated. */
interface MessageFields extends StudioFields {
  readonly apiKeyId?: string;
  readonly leadId?: string;
  readonly replayed?: boolean;
  readonly consumer?: string | undefined;
  readonly leads?: unknown;
  readonly lead?: { readonly id: string };
  readonly apiKey?: { readonly id: string };
}

/** Returns what is logged of a request and its response. */
function loggedFieldsOf(request: MessageFields, response: MessageFields): LoggedFields {
  const found: Readonly<Record<keyof typeof LOGGED, unknown>> = {
    studioId: response.studioId ?? studioIdIn(request),
    apiKeyId: response.apiKeyId ?? response.apiKey?.id ?? request.apiKeyId,
    leadId: response.lead?.id ?? response.leadId ?? request.leadId ?? request.lead?.id,
    replayed: response.replayed,
    leads: request.leads,
  };
  return Object.fromEntries(
    Object.entries(found).filter(([name, value]) => LOGGED[name as keyof typeof LOGGED](value)),
  );
}

/** The series that are exported from the start, so that a rate includes their first event. */
const OPERATIONS = ['CreateLead', 'GetLead', 'ListLeads', 'AuthenticateApiKey', 'ExportLeads'];
const OUTCOMES = ['ok', 'INTERNAL', 'UNAVAILABLE'];

/** How long a count is cached; milliseconds. Counting can take a second. A failed count is not cached. */
const COUNT_TTL_MS = 30_000;

/**
 * Creates the core's metrics. Each label has a closed set of values; nothing that a caller sends becomes one, but for the
 * names of consumers, of which there are few.
 */
export function createCoreMetrics() {
  const registry = new Metrics();
  const calls = registry.histogram(
    'lead_intake_core_call_duration_seconds',
    'Duration of calls by operation and outcome (ok, the reason of a refusal, or a status).',
    ['operation', 'outcome'],
  );
  for (const operation of OPERATIONS) for (const outcome of OUTCOMES) calls.zero({ operation, outcome });
  const batches = registry.histogram(
    'lead_intake_core_batch_requests',
    'Requests per message of the exchange by operation.',
    ['operation'],
    SIZES,
  );
  const commands = registry.histogram(
    'lead_intake_core_store_duration_seconds',
    'Duration of database commands by command and outcome.',
    ['command', 'outcome'],
  );
  const sizes = registry.histogram(
    'lead_intake_core_store_batch_size',
    'Writes or reads per database command by command.',
    ['command'],
    SIZES,
  );
  const callsOfCallers = registry.counter(
    'lead_intake_core_caller_calls_total',
    "Calls of named callers by credential: the beginning of a token's SHA-256, or `certificate`.",
    ['caller', 'credential'],
  );
  const countOutcome = exportOutcomes(registry);
  let inFlight = 0;
  registry.gauge('lead_intake_core_calls_under_way', 'Calls in flight.', () => inFlight);

  return {
    registry,
    callBegan() {
      inFlight += 1;
    },
    callFinished(call: FinishedCall) {
      inFlight -= 1;
      calls.observe({ operation: call.operation, outcome: call.outcome }, call.durationMs / 1000);
      countOutcome(call);
    },
    /** Counts a call by its caller, if that has a name. */
    callerCalled({ name: caller, credential }: Caller) {
      if (caller !== null && credential !== null) callsOfCallers.inc({ caller, credential });
    },
    /** Records the number of requests in a message. */
    batchReceived: (operation: string, requests: number) => batches.observe({ operation }, requests),
    /** Begins a database command; the returned function records its end. */
    storeCommand({ name: command, size }: StoreCommand) {
      const began = performance.now();
      sizes.observe({ command }, size);
      return (isDone: boolean) =>
        commands.observe({ command, outcome: isDone ? 'ok' : 'failed' }, (performance.now() - began) / 1000);
    },
    clockSetBack: exportClock(registry),
    retention: exportRetention(registry),
    watchLeadChanges: (store: Store) => gaugeLeadChanges(registry, store),
    watchSqliteLog: (read?: () => Promise<number>) =>
      read && registry.gauge('lead_intake_core_sqlite_log_bytes', "Size of SQLite's log (-wal).", orNaN(read)),
    watchKeys: (deps: Changing) => gaugeEndingKeys(registry, deps),
    watchCertificates: (credentials: TlsCredentials) =>
      registry.gaugeExpiries('lead_intake_core_certificate_expiry_timestamp_seconds', credentials),
    /** Exports whether the store is available, and whether the core is shutting down. */
    watchReadiness(store: Readiness, draining: AbortSignal) {
      const isUp = async () => Number((await store.fault()) === undefined);
      registry.gauge('lead_intake_core_store_up', 'Whether the store is available and complete.', isUp);
      registry.gauge('lead_intake_core_stopping', 'Whether the core is stopping.', () => Number(draining.aborted));
    },
  };
}

export type CoreMetrics = ReturnType<typeof createCoreMetrics>;

interface FinishedCall extends Pick<MessageFields, 'replayed' | 'consumer'> {
  readonly operation: string;
  readonly outcome: string;
  readonly durationMs: number;
}

/** Exports what came of calls that only their messages tell, and returns a function that counts it. */
function exportOutcomes(registry: Metrics): (call: FinishedCall) => void {
  const replays = registry.counter(
    'lead_intake_core_replays_total',
    'Creations that returned the lead of an earlier request.',
  );
  const acknowledgements = registry.counter(
    'lead_intake_core_unnamed_acknowledgements_total',
    'Calls that acknowledged changes for the consumer without a name.',
  );
  return ({ operation, outcome, replayed, consumer }) => {
    if (replayed) replays.inc();
    const isOfDefault = consumer === '' || consumer === DEFAULT_CONSUMER.name;
    if (operation === 'AcknowledgeLeadChanges' && outcome === 'ok' && isOfDefault) acknowledgements.inc();
  };
}

/** Exports the clock, and returns a function that counts that it was set back. */
function exportClock(registry: Metrics): () => void {
  registry.gauge(
    'lead_intake_core_clock_timestamp_seconds',
    'The time by the clock of the core; seconds since 1970.',
    () => Date.now() / 1000,
  );
  const setBacks = registry.counter(
    'lead_intake_core_clock_set_back_total',
    'How often the clock was set back by more than a minute after leads were created with its time.',
  );
  return () => setBacks.inc();
}

/** Exports what becomes of leads that retention does not keep, and the time that it goes by. */
function exportRetention(registry: Metrics): Pick<RetentionObserver, 'time' | 'passed'> {
  let latest: Date | null = null;
  const leads = registry.counter(
    'lead_intake_core_retention_leads_total',
    'Leads that the retention of their studio does not keep, by what became of them; those that stay, once an hour.',
    ['outcome'],
  );
  registry.gauge(
    'lead_intake_core_retention_lag_seconds',
    'How far the time that retention goes by is behind the clock of the core.',
    () => (latest ? (Date.now() - latest.getTime()) / 1000 : Number.NaN),
  );
  return {
    time(time) {
      latest = time;
    },
    passed: (outcome: RetentionOutcome, count) => leads.inc({ outcome }, count),
  };
}

/** Returns a function that measures at most once in COUNT_TTL_MS. */
function cached<Measured>(measure: () => Promise<Measured>): () => Promise<Measured> {
  let last: { readonly at: number; readonly measured: Promise<Measured> } | undefined;
  return () => {
    if (!last || performance.now() - last.at > COUNT_TTL_MS) {
      const measured = measure();
      last = { at: performance.now(), measured };
      measured.catch(() => {
        last = undefined;
      });
    }
    return last.measured;
  };
}

/** How long the count of keys that end is used; milliseconds. It reads the keys of every studio. */
const KEYS_TTL_MS = 60 * 60 * 1000;

/** Exports how many keys in use end soon. A scrape waits for no count: it gets the last one, and before the first NaN. */
function gaugeEndingKeys(registry: Metrics, deps: Changing): void {
  let last: { readonly at: number; readonly counts: ReadonlyMap<number, number> } | undefined;
  let isCounting = false;
  const count = async () => {
    isCounting = true;
    try {
      last = { at: performance.now(), counts: await countEndingKeys(deps) };
    } catch {
      // The next scrape counts again.
    } finally {
      isCounting = false;
    }
  };
  const read = async () => {
    if (!isCounting && !(last && performance.now() - last.at < KEYS_TTL_MS)) void count();
    return ENDING_WITHIN_DAYS.map((days) => [`${days}`, last?.counts.get(days) ?? Number.NaN] as const);
  };
  registry.gaugeBy(
    'lead_intake_core_keys_ending',
    'Valid keys that requests used in the last 30 days and that end within so many days; at most an hour old.',
    { label: 'days', read },
  );
}

const ageSeconds = (since: Date | null): number => (since ? Math.max(0, Date.now() - since.getTime()) / 1000 : 0);

/** An unavailable store must not fail the export of the other metrics. */
const orNaN = (read: () => Promise<number>) => () => read().catch(() => Number.NaN);

/** Exports how many leads have unacknowledged changes, and since when. */
function gaugeLeadChanges(registry: Metrics, store: Store): void {
  const measure = cached(async () => (await measureConsumer({ store }, DEFAULT_CONSUMER)).waiting);
  registry.gauge(
    'lead_intake_core_changes_waiting',
    `Leads with unacknowledged changes, counted up to ${MAX_COUNTED}.`,
    orNaN(async () => (await measure()).leads),
  );
  registry.gauge(
    'lead_intake_core_changes_oldest_seconds',
    'Age of the oldest unacknowledged change; 0: there is none.',
    orNaN(async () => ageSeconds((await measure()).since)),
  );
  const measureConsumers = cached(async () => {
    const measured: (readonly [name: string, deliveries: MeasuredDeliveries])[] = [];
    const unknown = { leads: Number.NaN, since: new Date(Number.NaN) };
    const none = { waiting: unknown, setAside: unknown, isComplete: false };
    const began = performance.now();
    // One after the other: counting costs the database most. While one call takes as long as it may, others would, too.
    for (const consumer of await store.listConsumers()) {
      const isLate = performance.now() - began >= STORE_CALL_MS;
      measured.push([consumer.name, isLate ? none : await measureConsumer({ store }, consumer).catch(() => none)]);
    }
    return measured;
  });
  const ofEach = (value: (measured: MeasuredDeliveries) => number) => ({
    label: 'consumer',
    read: async () =>
      (await measureConsumers().catch(() => [])).map(([name, measured]) => [name, value(measured)] as const),
  });
  registry.gaugeBy(
    'lead_intake_core_consumer_changes_waiting',
    `Leads with changes that a named consumer has not acknowledged, counted up to ${MAX_COUNTED}, by consumer.`,
    ofEach(({ waiting }) => waiting.leads),
  );
  registry.gaugeBy(
    'lead_intake_core_consumer_changes_oldest_seconds',
    'Age of the oldest change that a named consumer has not acknowledged, by consumer; 0: there is none.',
    ofEach(({ waiting }) => ageSeconds(waiting.since)),
  );
  registry.gaugeBy(
    'lead_intake_core_consumer_changes_set_aside',
    `Leads that a named consumer has set aside until they are taken back, counted up to ${MAX_COUNTED}, by consumer.`,
    ofEach(({ setAside }) => setAside.leads),
  );
}
