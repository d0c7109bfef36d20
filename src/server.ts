import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import fastify, { type FastifyInstance, LogController } from 'fastify';
import type { CoreConfig } from './config.ts';
import { authenticateCaller } from './rpc/caller-authentication.ts';
import { callRunner, runCalls } from './rpc/calls.ts';
import type { Serving } from './rpc/health-service.ts';
import { routes } from './rpc/routes.ts';
import { endUnfinishedStreams } from './unfinished-streams.ts';
import type { Dependencies } from './usecases/dependencies.ts';

/** The largest message a caller may send, packed or not; bytes. The largest lead has about 10 KB, batches their own bound. */
const LARGEST_MESSAGE_BYTES = 64 * 1024;

/** The longest deadline a caller may ask for; milliseconds. */
const LONGEST_TIMEOUT_MS = 60_000;

/**
 * Puts the core's RPCs on one HTTP/2 port, for gRPC, gRPC-Web and Connect alike; with TLS, for HTTP/1.1 too.
 *
 * @param check whether a call that starts now would be served
 * @param draining aborted when the server means to stop
 */
export async function createCoreServer(
  config: CoreConfig,
  deps: Dependencies,
  { check, draining }: Pick<Serving, 'check' | 'draining'>,
): Promise<FastifyInstance> {
  const app = fastify({
    ...transport(config),
    logger: { level: config.LOG_LEVEL, name: 'core' },
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: LARGEST_MESSAGE_BYTES,
  }) as unknown as FastifyInstance;
  endUnfinishedStreams(app);
  const ending = new AbortController();
  app.addHook('preClose', async () => ending.abort());
  const run = callRunner(app.log);
  await app.register(fastifyConnectPlugin, {
    routes: routes(deps, {
      run,
      serving: { check, draining, ending: ending.signal },
      reflects: config.CORE_REFLECTION,
    }),
    requestGate: authenticateCaller(config.CORE_TOKEN, run),
    interceptors: [runCalls(run)],
    readMaxBytes: LARGEST_MESSAGE_BYTES,
    maxTimeoutMs: LONGEST_TIMEOUT_MS,
  });
  return app;
}

function transport(config: CoreConfig) {
  if (!config.CORE_TLS_CERT_FILE || !config.CORE_TLS_KEY_FILE) return { http2: true } as const;
  const tls = { allowHTTP1: true, cert: config.CORE_TLS_CERT_FILE, key: config.CORE_TLS_KEY_FILE.reveal() };
  const ca = config.CORE_TLS_CLIENT_CA_FILE;
  return { http2: true, https: ca ? { ...tls, ca, requestCert: true, rejectUnauthorized: true } : tls } as const;
}
