import type { Logger } from 'pino';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { Throttle } from '../../common/throttle.ts';
import type { ReportUnreadable } from '../store/port/faults.ts';
import type { SlowCommands } from '../store/port/listeners.ts';
import type { RetentionObserver } from '../usecases/retain-leads.ts';
import type { CoreMetrics } from './metrics.ts';

/** The interval in which each record is logged at most once; milliseconds. */
const LOG_INTERVAL_MS = 3_600_000;

/** The maximum number of log lines per interval, so that damaged data cannot fill the disk. */
const MAX_LOG_LINES = 1000;

/** Logs unreadable records, each at most once per interval. */
export function unreadableRecordLog(log: Logger): ReportUnreadable {
  const throttle = new Throttle(LOG_INTERVAL_MS, MAX_LOG_LINES);
  return ({ kind, studioId, id, field }) => {
    if (!throttle.allow(`${kind} ${studioId} ${id}`)) return;
    log.error({ kind, studioId, id, field }, 'unreadable record');
  };
}

/** The duration from which a database command is logged; milliseconds. Per interval, each shape is logged once, up to a maximum. */
const [SLOW_COMMAND_MS, SLOW_INTERVAL_MS, MAX_SLOW_SHAPES] = [1000, 60_000, 10];

/** The maximum length of a logged shape; characters. */
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

/** Logs and counts erasures by retention. Failures are logged at most once an hour. */
export function retentionObserver(log: Logger, metrics?: CoreMetrics): RetentionObserver {
  const throttle = new Throttle(LOG_INTERVAL_MS);
  return {
    ...(metrics?.retention ?? { time() {}, processed() {} }),
    erased: (studioId, leads) => log.info({ studioId, leads }, 'retention: closed leads erased'),
    failed: (err) => throttle.allow() && log.warn({ err }, 'retention: interrupted by an error, and continues'),
  };
}

const isId = (value: unknown): boolean => typeof value === 'string' && uuidFault(value) === undefined;

/**
 * The only fields of requests and responses that are logged: valid ids, numbers and booleans. A message of another
 * method may have text or records in a field of the same name; those are left out.
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

/** The fields of messages in which the logged ones are found; unchecked. */
export interface MessageFields extends StudioFields {
  readonly apiKeyId?: string;
  readonly leadId?: string;
  readonly replayed?: boolean;
  readonly consumer?: string | undefined;
  readonly leads?: unknown;
  readonly lead?: { readonly id: string };
  readonly apiKey?: { readonly id: string };
}

export function loggedFields(request: MessageFields, response: MessageFields): LoggedFields {
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
