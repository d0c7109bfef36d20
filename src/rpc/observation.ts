import type { Logger } from 'pino';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { currentSpan, type Tracer } from '../../common/tracing.ts';
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
      const isReplay = (response as LoggedFields).replayed;
      metrics?.callFinished(operation, outcome, durationMs, isReplay === true);
      if (caller) metrics?.callerCalled(caller);
      if (!isLogged && !span) return;
      const { leads }: LoggedFields = request ?? {};
      const attributes = {
        requestId,
        caller: caller?.name ?? undefined,
        operation,
        outcome,
        replayed: isReplay,
        leads,
        ...idsIn(request ?? {}, response),
      };
      span?.end({ failed: FAULTS.has(outcome), attributes });
      if (isLogged) log.info({ ...attributes, durationMs });
    };
    return { during: span && ((body) => currentSpan.run(span, body)), finish };
  };
}

/** The fields of requests and responses that are logged. Those of requests are not validated yet. */
interface LoggedFields extends StudioFields {
  readonly apiKeyId?: string;
  readonly leadId?: string;
  readonly replayed?: boolean;
  /** The number of leads that an export has sent. */
  readonly leads?: number;
  readonly lead?: { readonly id: string };
  readonly apiKey?: { readonly id: string };
}

/** Returns the valid ids in a request and its response. Nothing else of them is logged. */
function idsIn(request: LoggedFields, response: LoggedFields) {
  const studioId = response.studioId ?? studioIdIn(request);
  const apiKeyId = response.apiKeyId ?? response.apiKey?.id ?? request.apiKeyId;
  const leadId = response.lead?.id ?? response.leadId ?? request.leadId ?? request.lead?.id;
  return {
    studioId: studioId !== undefined && crmIdFault(studioId) === undefined ? studioId : undefined,
    apiKeyId: apiKeyId !== undefined && uuidFault(apiKeyId) === undefined ? apiKeyId : undefined,
    leadId: leadId !== undefined && uuidFault(leadId) === undefined ? leadId : undefined,
  };
}
