import type { Logger } from 'pino';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { currentSpan, type Span, type Tracer } from '../../common/tracing.ts';
import type { StoreObserver } from '../store/store.ts';
import type { Call } from './call.ts';
import { type StudioFields, studioIdIn } from './caller-access.ts';
import type { CoreMetrics } from './metrics.ts';

/** Called when a call begins. */
export type CallObserver = (call: Call) => ObservedCall;

interface ObservedCall {
  /** Executes the call within its span, if it is traced. */
  readonly during?: (<Response>(body: () => Promise<Response>) => Promise<Response>) | undefined;
  /**
   * Called when the call ends.
   *
   * @param outcome `ok`, the reason of a refusal, or a status
   * @param response the response, or the metadata of the refusal
   */
  finish(outcome: string, response: object): void;
}

/** The outcomes that are failures of the service. */
const FAULTS = new Set(['INTERNAL', 'UNAVAILABLE', 'UNKNOWN']);

/** Returns an observer that logs, counts and traces calls; undefined if all of that is disabled. */
export function callObserver(
  log: Logger,
  metrics: CoreMetrics | undefined,
  tracer?: Tracer | undefined,
): CallObserver | undefined {
  const isLogged = log.isLevelEnabled('info');
  if (!isLogged && !metrics && !tracer) return undefined;
  return ({ operation, requestId, request, traceparent, caller }) => {
    const began = performance.now();
    metrics?.callBegan();
    const span = tracer?.begin(operation, traceparent);
    const finish = (outcome: string, response: object) => {
      const durationMs = Math.round((performance.now() - began) * 100) / 100;
      const logged = loggedFieldsOf(request ?? {}, response);
      metrics?.callFinished(operation, outcome, durationMs, logged.replayed === true);
      if (caller) metrics?.callerCalled(caller);
      if (!isLogged && !span) return;
      const attributes = { requestId, caller: caller?.name ?? undefined, operation, outcome, ...logged };
      span?.end({ failed: FAULTS.has(outcome), attributes });
      if (isLogged) log.info({ ...attributes, traceId: span?.traceId, durationMs });
    };
    return { during: span && ((body) => currentSpan.run(span, body)), finish };
  };
}

/**
 * Returns an observer that counts and traces database commands; undefined if both are disabled. One that several requests
 * share has a span in the trace of each.
 */
export function storeObserver(
  metrics: CoreMetrics | undefined,
  tracer: Tracer | undefined,
): StoreObserver<Span> | undefined {
  if (!metrics && !tracer) return undefined;
  return {
    caller: () => currentSpan.getStore(),
    commandStarted(command, callers) {
      const { system, name, size } = command;
      const counted = metrics?.storeCommand(command);
      const attributes = { 'db.system.name': system, 'db.operation.name': name, 'db.operation.batch.size': size };
      const spans = [...new Set(callers)].map((caller) => caller?.child(`${system} ${name}`, attributes));
      return (isDone) => {
        counted?.(isDone);
        for (const span of spans) span?.end({ failed: !isDone });
      };
    },
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

/** The fields of messages in which these are found; not validated. */
interface MessageFields extends StudioFields {
  readonly apiKeyId?: string;
  readonly leadId?: string;
  readonly replayed?: boolean;
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
