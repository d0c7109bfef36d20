import type { Interceptor, Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { CORE_PING_INTERVAL_MS, CORE_PING_TIMEOUT_MS } from '../../common/deadlines.ts';
import type { TlsCredentials, TlsFiles } from '../../common/tls-credentials.ts';
import type { GatewayConfig } from '../config.ts';
import { CoreSessions } from './core-sessions.ts';
import type { CoreToken } from './core-token.ts';

/** The maximum size of a response message; bytes. A page of the longest leads, or a batch of them, has about 1 MB. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

/**
 * Creates the transport to a core, which connects at the first call and after each loss, with the current credentials.
 */
export function connectToCore(
  config: GatewayConfig,
  credentials: TlsCredentials,
  token: CoreToken,
): { transport: Transport; sessions: CoreSessions } {
  const { CORE_URL } = config;
  const sessions = new CoreSessions(
    CORE_URL,
    // A ping detects a core that vanished sooner than the operating system's timeout.
    { pingIntervalMs: CORE_PING_INTERVAL_MS, pingTimeoutMs: CORE_PING_TIMEOUT_MS },
    // A getter, because it is read for each connection.
    {
      get secureContext() {
        return credentials.secureContext;
      },
    },
  );
  const transport = createConnectTransport({
    baseUrl: CORE_URL,
    httpVersion: '2',
    useBinaryFormat: true,
    sessionManager: sessions,
    readMaxBytes: MAX_RESPONSE_BYTES,
    // Within one network, compression costs more than it saves.
    acceptCompression: [],
    interceptors: [presentToken(token)],
  });
  return { transport, sessions };
}

/** Returns the authorities that verify the core, and the client certificate that it is shown. */
export function tlsToCore({ CORE_CA_FILE, CORE_CLIENT_CERT_FILE, CORE_CLIENT_KEY_FILE }: GatewayConfig): TlsFiles {
  return { ca: CORE_CA_FILE, cert: CORE_CLIENT_CERT_FILE, key: CORE_CLIENT_KEY_FILE };
}

/** Adds the core's token to every call, if there is one. */
export function presentToken(token: CoreToken): Interceptor {
  return (next) => (request) => {
    const { authorization } = token;
    if (authorization !== undefined) request.header.set('authorization', authorization);
    return next(request);
  };
}
