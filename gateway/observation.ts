import type { Logger } from 'pino';
import type { FinishedRequest } from './finished-request.ts';
import type { GatewayMetrics } from './metrics.ts';

/** Is told of every request that is over. */
export type RequestObserver = (finished: FinishedRequest) => void;

/** Writes a line about every request and counts it; undefined when nobody would see either. */
export function requestObserver(log: Logger, metrics: GatewayMetrics | undefined): RequestObserver | undefined {
  const isWritten = log.isLevelEnabled('info');
  if (!isWritten && !metrics) return undefined;
  return (finished) => {
    metrics?.requestFinished(finished);
    if (isWritten) log.info(finished);
  };
}
