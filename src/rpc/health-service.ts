import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect';
import { type Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/health/v1/health_pb.ts';

/**
 * The standard health check (`grpc.health.v1`), for the whole server ('') and for each of its services alike: they share
 * one store. Watch and List are left unimplemented, which the protocol allows.
 *
 * @param isServing whether a call that starts now would be served
 */
export function healthService(
  serviceNames: readonly string[],
  isServing: () => Promise<boolean>,
): Partial<ServiceImpl<typeof Health>> {
  const known = new Set(['', ...serviceNames]);
  return {
    async check({ service }) {
      if (!known.has(service)) throw new ConnectError('there is no such service', Code.NotFound);
      return { status: (await isServing()) ? Status.SERVING : Status.NOT_SERVING };
    },
  };
}
