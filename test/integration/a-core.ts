import { pino } from 'pino';
import { Readiness } from '../../common/readiness.ts';
import { TlsCredentials } from '../../common/tls-credentials.ts';
import { readCoreConfig } from '../../src/config.ts';
import { newId, systemClock } from '../../src/domain/new-id.ts';
import { createCoreServer } from '../../src/port/core-server.ts';
import { Callers } from '../../src/rpc/callers.ts';
import type { callRunner } from '../../src/rpc/run-call.ts';
import type { Store } from '../../src/store/store.ts';
import { CORE_TOKEN, grpcCaller } from '../support/grpc.ts';

/**
 * Starts the server of a core on a store that a test observes or breaks, and a client. The caller must stop both.
 *
 * @param run runs the calls, and logs and counts them
 */
export async function aCoreOn(store: Store, run: ReturnType<typeof callRunner>, clock = systemClock) {
  const log = pino({ level: 'silent' });
  const readiness = new Readiness('the database', () => store.check(), log);
  const config = readCoreConfig({ CORE_PORT: '0', CORE_TOKEN });
  const server = createCoreServer(
    config,
    { store, clock, newId },
    {
      callers: new Callers(config.CORE_TOKEN, undefined),
      log,
      readiness,
      draining: new AbortController().signal,
      run,
      batchReceived: undefined,
      credentials: new TlsCredentials({}),
    },
  );
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const caller = grpcCaller(new URL(url).host);
  return {
    url,
    caller,
    /** Stops the server but not the client. */
    stop: () => server.close(),
    close() {
      caller.close();
      readiness.close();
    },
  };
}
