import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect';
import { DRAINING_HEADER, type Readiness } from '../../common/readiness.ts';
import { type Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/health/v1/health_pb.ts';
import { callerIfAny, mayUse } from './callers.ts';
import { forbidden, toConnectError } from './refusals.ts';
import { connectionDraining } from './run-call.ts';

/** The maximum number of concurrent unauthenticated watchers. A watcher occupies memory until it disconnects. */
export const MAX_UNAUTHENTICATED_WATCHERS = 64;

/** The conditions that determine the health status. */
export interface Serving {
  readonly store: Readiness;
  /** Aborts when shutdown begins, a drain time before the port closes. */
  readonly draining: AbortSignal;
  /** Aborts when the server stops; watches then end. */
  readonly ending: AbortSignal;
}

/**
 * Implements the standard health check (`grpc.health.v1`). The whole server ('') and its services have the same status,
 * because they share one store. All requests within a second share one check of the store.
 */
export function healthService(serviceNames: readonly string[], serving: Serving): ServiceImpl<typeof Health> {
  const { store, draining, ending } = serving;
  const known = ['', ...serviceNames];
  const statusNow = async () => {
    const isServing = !draining.aborted && (await store.fault()) === undefined;
    return isServing ? Status.SERVING : Status.NOT_SERVING;
  };
  let unauthenticatedWatchers = 0;
  return {
    async check({ service }, context) {
      if (!known.includes(service)) throw new ConnectError('unknown service', Code.NotFound);
      const caller = callerIfAny(context);
      if (caller && !mayUse(caller, service)) throw toConnectError(forbidden(caller.name, 'may not use this service'));
      if (draining.aborted && (await store.fault()) === undefined) context.responseHeader.set(DRAINING_HEADER, 'yes');
      return { status: await statusNow() };
    },

    async list() {
      const status = await statusNow();
      return { statuses: Object.fromEntries(known.map((name) => [name, { status }])) };
    },

    async *watch({ service }, context) {
      const { signal, values } = context;
      const isUnauthenticated = callerIfAny(context) === undefined;
      if (isUnauthenticated && unauthenticatedWatchers >= MAX_UNAUTHENTICATED_WATCHERS) {
        throw new ConnectError('too many watchers without a token: present one', Code.ResourceExhausted);
      }
      unauthenticatedWatchers += Number(isUnauthenticated);
      try {
        const end = AbortSignal.any([signal, ending, values.get(connectionDraining)]);
        const isKnown = known.includes(service);
        for (let sent: Status | undefined; !end.aborted; ) {
          const { changeCount } = store;
          // The start of shutdown is sent immediately, and is the last change.
          const next = draining.aborted ? end : AbortSignal.any([end, draining]);
          const status = isKnown ? await statusNow() : Status.SERVICE_UNKNOWN;
          if (status !== sent) yield { status };
          sent = status;
          await store.changed(changeCount, next);
        }
      } finally {
        unauthenticatedWatchers -= Number(isUnauthenticated);
      }
    },
  };
}
