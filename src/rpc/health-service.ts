import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect';
import type { Readiness } from '../../common/readiness.ts';
import { type Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/health/v1/health_pb.ts';
import { callerIfAny, forbidden, mayUse } from './caller-access.ts';
import { connectionDraining } from './connection-draining.ts';
import { connectErrorOf } from './refusals.ts';

/** How many callers without a token may watch at once. A watcher is kept in memory for as long as it likes. */
export const MAX_UNAUTHENTICATED_WATCHERS = 64;

/** What decides whether a server serves. */
export interface Serving {
  /** Whether what it needs is there. */
  readonly store: Readiness;
  /** Aborted when the server means to stop, some time before it does. */
  readonly draining: AbortSignal;
  /** Aborted when the server stops: whoever watches is let go. */
  readonly ending: AbortSignal;
}

/**
 * The standard health check (`grpc.health.v1`), for the whole server ('') and for each of its services alike: they share
 * one store. Whoever asks is told what the one look of the second has found.
 */
export function healthService(serviceNames: readonly string[], serving: Serving): ServiceImpl<typeof Health> {
  const { store, draining, ending } = serving;
  const known = ['', ...serviceNames];
  const statusNow = async () => {
    const isServing = !draining.aborted && (await store.fault()) === undefined;
    return isServing ? Status.SERVING : Status.NOT_SERVING;
  };
  let strangers = 0;
  return {
    async check({ service }, context) {
      if (!known.includes(service)) throw new ConnectError('there is no such service', Code.NotFound);
      const caller = callerIfAny(context);
      if (caller && !mayUse(caller, service)) throw connectErrorOf(forbidden(caller.name, 'may not use this service'));
      return { status: await statusNow() };
    },

    async list() {
      const status = await statusNow();
      return { statuses: Object.fromEntries(known.map((name) => [name, { status }])) };
    },

    async *watch({ service }, context) {
      const { signal, values } = context;
      const isStranger = callerIfAny(context) === undefined;
      if (isStranger && strangers >= MAX_UNAUTHENTICATED_WATCHERS) {
        throw new ConnectError(`${MAX_UNAUTHENTICATED_WATCHERS} watch already`, Code.ResourceExhausted);
      }
      strangers += Number(isStranger);
      try {
        const over = AbortSignal.any([signal, ending, values.get(connectionDraining)]);
        const isKnown = known.includes(service);
        for (let told: Status | undefined; !over.aborted; ) {
          const { changeCount } = store;
          // A server that is about to stop says so at once, and has no more to say then.
          const next = draining.aborted ? over : AbortSignal.any([over, draining]);
          const status = isKnown ? await statusNow() : Status.SERVICE_UNKNOWN;
          if (status !== told) yield { status };
          told = status;
          await store.changed(changeCount, next);
        }
      } finally {
        strangers -= Number(isStranger);
      }
    },
  };
}
