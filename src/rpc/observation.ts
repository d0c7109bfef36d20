import type { Logger } from 'pino';
import { crmIdFault, uuidFault } from '../domain/rules/field-rules.ts';
import type { Call } from './calls.ts';
import type { CoreMetrics } from './metrics.ts';

/** Is told of every call when it begins, and by what it gives then, how it ended. */
export type CallObserver = (call: Call) => Finish;

/**
 * @param outcome `ok`, the reason of a refusal, or a status
 * @param answer what was answered, or the facts of the refusal
 */
type Finish = (outcome: string, answer: object) => void;

/** Writes a line about every call and counts it; undefined when nobody would see either. */
export function callObserver(log: Logger, metrics: CoreMetrics | undefined): CallObserver | undefined {
  const isWritten = log.isLevelEnabled('info');
  if (!isWritten && !metrics) return undefined;
  return ({ operation, requestId, request }) => {
    const began = performance.now();
    metrics?.callBegan();
    return (outcome, answer) => {
      const durationMs = Math.round((performance.now() - began) * 100) / 100;
      const isReplay = (answer as Named).replayed;
      metrics?.callFinished(operation, outcome, durationMs, isReplay === true);
      if (isWritten) {
        const names = namesIn(request ?? {}, answer);
        log.info({ requestId, operation, outcome, replayed: isReplay, ...names, durationMs });
      }
    };
  };
}

/** What requests and answers may have of what a line names. Texts of requests are not checked yet. */
interface Named {
  readonly studioId?: string;
  readonly apiKeyId?: string;
  readonly leadId?: string;
  readonly replayed?: boolean;
  readonly lead?: { readonly id: string };
  readonly apiKey?: { readonly id: string };
  readonly studio?: { readonly id: string };
  readonly member?: { readonly studioId: string };
  readonly leadSource?: { readonly studioId: string };
}

/** What a call was about; nothing else of what it carried. */
function namesIn(request: Named, answer: Named) {
  const { studio, member, leadSource } = request;
  const studioId = answer.studioId ?? request.studioId ?? studio?.id ?? member?.studioId ?? leadSource?.studioId;
  const apiKeyId = answer.apiKeyId ?? answer.apiKey?.id ?? request.apiKeyId;
  const leadId = answer.lead?.id ?? answer.leadId ?? request.leadId;
  return {
    studioId: studioId !== undefined && crmIdFault(studioId) === undefined ? studioId : undefined,
    apiKeyId: apiKeyId !== undefined && uuidFault(apiKeyId) === undefined ? apiKeyId : undefined,
    leadId: leadId !== undefined && uuidFault(leadId) === undefined ? leadId : undefined,
  };
}
