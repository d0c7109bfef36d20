import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { DOCTOR_MS } from '../../common/deadlines.ts';
import { errorSummary } from '../../common/error-summary.ts';
import { TlsCredentials } from '../../common/tls-credentials.ts';
import type { GatewayConfig } from '../../gateway/config.ts';
import { CoreSessions, CoreToken, presentToken, tlsToCore } from '../../gateway/core/core-connection.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { Health, HealthCheckResponse_ServingStatus as Serving } from '../../proto/gen/health/v1/health_pb.ts';
import { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { Notes } from './finding.ts';

const UNKNOWN_TOKEN =
  'does not accept this CORE_TOKEN: it needs the same, or its hash in the file of CORE_CALLERS_FILE';
const MISSING_ROLE = 'refuses this caller as a gateway: add the role `gateway` in the file of CORE_CALLERS_FILE';

/** Checks whether the core serves and accepts the token, over the connection that the gateway uses. */
export async function examineCore(notes: Notes, config: GatewayConfig): Promise<void> {
  const { CORE_URL } = config;
  let transport: Transport;
  try {
    transport = createConnectTransport({
      baseUrl: CORE_URL,
      httpVersion: '2',
      interceptors: [presentToken(new CoreToken(config))],
      sessionManager: new CoreSessions(CORE_URL, {}, new TlsCredentials(tlsToCore(config)).pem),
    });
    const { status } = await createClient(Health, transport).check({}, { timeoutMs: DOCTOR_MS });
    if (status === Serving.SERVING) notes.ok(`at ${CORE_URL} serves`);
    else
      notes.fault(`at ${CORE_URL} answers, but does not serve: it is stopping or cannot use its database; see its log`);
  } catch (error) {
    if (ConnectError.from(error).code === Code.Unauthenticated) return notes.fault(UNKNOWN_TOKEN);
    return notes.fault(
      `at ${CORE_URL} does not answer: ${errorSummary(error)}. Check CORE_URL, its certificates, and that it is running`,
    );
  }
  try {
    // No secret has this hash, so an authorised gateway gets KEY_INVALID.
    const secretSha256 = new Uint8Array(32);
    await createClient(ApiKeyService, transport).authenticateApiKey({ secretSha256 }, { timeoutMs: DOCTOR_MS });
  } catch (error) {
    // The health check rejects a wrong token, but not a missing one.
    const reason = ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.reason;
    if (reason === 'CALLER_UNAUTHENTICATED') notes.fault(UNKNOWN_TOKEN);
    else if (reason === 'CALLER_FORBIDDEN') notes.fault(MISSING_ROLE);
    else if (reason !== 'KEY_INVALID') notes.fault(`fails a call: ${errorSummary(error)}; see its log`);
  }
}
