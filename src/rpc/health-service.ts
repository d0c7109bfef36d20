import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect';
import { type Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/health/v1/health_pb.ts';

/** How often a watched server looks whether it still serves; milliseconds. */
const WATCH_EVERY_MS = 1000;

/** What decides whether a server serves. */
export interface Serving {
  /** Whether a call that starts now would be served. */
  readonly check: () => Promise<boolean>;
  /** Aborted when the server means to stop, some time before it does. */
  readonly draining: AbortSignal;
  /** Aborted when it stops: whoever watches is let go. */
  readonly ending: AbortSignal;
}

/**
 * The standard health check (`grpc.health.v1`), for the whole server ('') and for each of its services alike: they share
 * one store.
 */
export function healthService(serviceNames: readonly string[], serving: Serving): ServiceImpl<typeof Health> {
  const known = ['', ...serviceNames];
  const statusNow = async () => ((await serving.check()) ? Status.SERVING : Status.NOT_SERVING);
  return {
    async check({ service }) {
      if (!known.includes(service)) throw new ConnectError('there is no such service', Code.NotFound);
      return { status: await statusNow() };
    },

    async list() {
      const status = await statusNow();
      return { statuses: Object.fromEntries(known.map((name) => [name, { status }])) };
    },

    async *watch({ service }, { signal }) {
      const over = AbortSignal.any([signal, serving.ending]);
      const isKnown = known.includes(service);
      for (let told: Status | undefined; !over.aborted; ) {
        const status = isKnown ? await statusNow() : Status.SERVICE_UNKNOWN;
        if (status !== told) yield { status };
        told = status;
        // A server that is about to stop says so at once, and has no more to say then.
        const next = serving.draining.aborted ? over : AbortSignal.any([over, serving.draining]);
        await sleep(WATCH_EVERY_MS, undefined, { signal: next }).catch(() => {});
      }
    },
  };
}
