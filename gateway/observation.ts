import type { Logger } from 'pino';
import type { FinishedRequest } from './finished-request.ts';
import type { GatewayMetrics } from './metrics.ts';

/** Called for every finished request. */
export type RequestObserver = (finished: FinishedRequest) => void;

/** Returns an observer that logs and counts every request; undefined when neither is enabled. */
export function requestObserver(log: Logger, metrics: GatewayMetrics | undefined): RequestObserver | undefined {
  const isLogged = log.isLevelEnabled('info');
  if (!isLogged && !metrics) return undefined;
  return (finished) => {
    metrics?.requestFinished(finished);
    if (isLogged) log.info(finished);
  };
}
