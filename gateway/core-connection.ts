import type { Interceptor } from '@connectrpc/connect';
import type { GatewayConfig } from './config.ts';

/** What the core is trusted by, and what it is shown; options for Node's TLS. */
export function tlsToCore({ CORE_CA_FILE, CORE_CLIENT_CERT_FILE, CORE_CLIENT_KEY_FILE }: GatewayConfig) {
  return {
    ...(CORE_CA_FILE && { ca: CORE_CA_FILE }),
    ...(CORE_CLIENT_CERT_FILE && { cert: CORE_CLIENT_CERT_FILE }),
    ...(CORE_CLIENT_KEY_FILE && { key: CORE_CLIENT_KEY_FILE.reveal() }),
  };
}

/** Presents the core's token with every call, if there is one. */
export function presentToken({ CORE_TOKEN }: GatewayConfig): Interceptor[] {
  if (!CORE_TOKEN) return [];
  const authorization = `Bearer ${CORE_TOKEN.reveal()}`;
  return [
    (next) => (request) => {
      request.header.set('authorization', authorization);
      return next(request);
    },
  ];
}
