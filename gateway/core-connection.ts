import type { Interceptor, Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { CORE_PING_ANSWER_MS, CORE_PING_EVERY_MS } from '../common/deadlines.ts';
import type { TlsCredentials, TlsFiles } from '../common/tls-credentials.ts';
import type { GatewayConfig } from './config.ts';
import { CoreSessions } from './core-sessions.ts';
import type { CoreToken } from './core-token.ts';

/** The largest message of an answer to read; bytes. A page of the longest leads, or a batch of them, has about 1 MB. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

/** The connections to a core, each made at the first call and again whenever it is lost, with the credentials of that moment. */
export function connectToCore(
  config: GatewayConfig,
  credentials: TlsCredentials,
  token: CoreToken,
): { transport: Transport; sessions: CoreSessions } {
  const { CORE_URL } = config;
  const sessions = new CoreSessions(
    CORE_URL,
    // A core that is gone without a word is noticed by a ping, not by the operating system's patience.
    { pingIntervalMs: CORE_PING_EVERY_MS, pingTimeoutMs: CORE_PING_ANSWER_MS },
    // Looked at for each connection.
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
    // The two are near each other: packing costs more than it saves.
    acceptCompression: [],
    interceptors: [presentToken(token)],
  });
  return { transport, sessions };
}

/** What the core is trusted by, and what it is shown. */
export function tlsToCore({ CORE_CA_FILE, CORE_CLIENT_CERT_FILE, CORE_CLIENT_KEY_FILE }: GatewayConfig): TlsFiles {
  return { ca: CORE_CA_FILE, cert: CORE_CLIENT_CERT_FILE, key: CORE_CLIENT_KEY_FILE };
}

/** Presents the core's token with every call, if there is one. */
export function presentToken(token: CoreToken): Interceptor {
  return (next) => (request) => {
    const { authorization } = token;
    if (authorization !== undefined) request.header.set('authorization', authorization);
    return next(request);
  };
}
