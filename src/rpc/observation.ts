import type { Logger } from 'pino';
import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import { currentSpan, type Tracer } from '../../common/tracing.ts';
import type { Call } from './call.ts';
import type { CoreMetrics } from './metrics.ts';

/** Is told of every call when it begins. */
export type CallObserver = (call: Call) => ObservedCall;

interface ObservedCall {
  /** Does the call's work, if it matters what is done during the call. */
  readonly during?: (<Answer>(body: () => Promise<Answer>) => Promise<Answer>) | undefined;
  /**
   * Is told how it ended.
   *
   * @param outcome `ok`, the reason of a refusal, or a status
   * @param answer what was answered, or the facts of the refusal
   */
  finish(outcome: string, answer: object): void;
}

/** Outcomes that are faults of ours. */
const FAULTS = new Set(['INTERNAL', 'UNAVAILABLE', 'UNKNOWN']);

/** Writes a line about every call, counts and traces it; undefined when nobody would see any of that. */
export function callObserver(
  log: Logger,
  metrics: CoreMetrics | undefined,
  tracer?: Tracer | undefined,
): CallObserver | undefined {
  const isWritten = log.isLevelEnabled('info');
  if (!isWritten && !metrics && !tracer) return undefined;
  return ({ operation, requestId, request, traceparent, caller }) => {
    const began = performance.now();
    metrics?.callBegan();
    const span = tracer?.begin(operation, traceparent);
    const finish = (outcome: string, answer: object) => {
      const durationMs = Math.round((performance.now() - began) * 100) / 100;
      const isReplay = (answer as Named).replayed;
      metrics?.callFinished(operation, outcome, durationMs, isReplay === true);
      if (caller) metrics?.callerCalled(caller);
      if (!isWritten && !span) return;
      const { leads }: Named = request ?? {};
      const told = {
        requestId,
        caller: caller?.name ?? undefined,
        operation,
        outcome,
        replayed: isReplay,
        leads,
        ...namesIn(request ?? {}, answer),
      };
      span?.end({ failed: FAULTS.has(outcome), attributes: told });
      if (isWritten) log.info({ ...told, durationMs });
    };
    return { during: span && ((body) => currentSpan.run(span, body)), finish };
  };
}

/** What requests and answers may have of what a line names. Texts of requests are not checked yet. */
interface Named {
  readonly studioId?: string;
  readonly apiKeyId?: string;
  readonly leadId?: string;
  readonly replayed?: boolean;
  /** How many leads an export has sent. */
  readonly leads?: number;
  readonly lead?: { readonly id: string };
  readonly apiKey?: { readonly id: string };
  readonly studio?: { readonly id: string };
  readonly member?: { readonly studioId: string };
  readonly leadSource?: { readonly studioId: string };
}

/** What a call was about; nothing else of what it carried. */
function namesIn(request: Named, answer: Named) {
  const { studio, member, leadSource, lead } = request;
  const studioId = answer.studioId ?? request.studioId ?? studio?.id ?? member?.studioId ?? leadSource?.studioId;
  const apiKeyId = answer.apiKeyId ?? answer.apiKey?.id ?? request.apiKeyId;
  const leadId = answer.lead?.id ?? answer.leadId ?? request.leadId ?? lead?.id;
  return {
    studioId: studioId !== undefined && crmIdFault(studioId) === undefined ? studioId : undefined,
    apiKeyId: apiKeyId !== undefined && uuidFault(apiKeyId) === undefined ? apiKeyId : undefined,
    leadId: leadId !== undefined && uuidFault(leadId) === undefined ? leadId : undefined,
  };
}
