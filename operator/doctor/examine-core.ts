import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { DOCTOR_MS } from '../../common/deadlines.ts';
import { inOneLine } from '../../common/in-one-line.ts';
import { TlsCredentials } from '../../common/tls-credentials.ts';
import type { GatewayConfig } from '../../gateway/config.ts';
import { presentToken, tlsToCore } from '../../gateway/core-connection.ts';
import { Health, HealthCheckResponse_ServingStatus as Serving } from '../../proto/gen/health/v1/health_pb.ts';
import { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { type Finding, Notes } from './finding.ts';

const OTHER_TOKEN = 'does not take this CORE_TOKEN: both processes need the same';

/** Asks the core, as the gateway reaches it, whether it serves and takes the token. */
export async function examineCore(config: GatewayConfig): Promise<readonly Finding[]> {
  const notes = new Notes('core');
  const { CORE_URL } = config;
  let transport: Transport;
  try {
    transport = createConnectTransport({
      baseUrl: CORE_URL,
      httpVersion: '2',
      interceptors: presentToken(config),
      nodeOptions: new TlsCredentials(tlsToCore(config)).pem,
    });
    const { status } = await createClient(Health, transport).check({}, { timeoutMs: DOCTOR_MS });
    if (status === Serving.SERVING) notes.well(`at ${CORE_URL} serves`);
    else notes.fault(`at ${CORE_URL} answers, but does not serve: it is stopping, or cannot use its database`);
  } catch (error) {
    if (isTokenRefused(error)) notes.fault(OTHER_TOKEN);
    else
      notes.fault(
        `at ${CORE_URL} does not answer: ${inOneLine(error)}. Look at CORE_URL, its certificates, and whether it runs`,
      );
    return notes.findings;
  }
  try {
    // Nobody is called so: whoever is let in is told that.
    await createClient(DirectoryService, transport).getStudio({ studioId: 'doctor' }, { timeoutMs: DOCTOR_MS });
  } catch (error) {
    // A core says so of health only to those who present another token, not to those who present none.
    if (isTokenRefused(error)) notes.fault(OTHER_TOKEN);
    else if (ConnectError.from(error).code !== Code.NotFound) notes.fault(`answers a call with: ${inOneLine(error)}`);
  }
  return notes.findings;
}

const isTokenRefused = (error: unknown): boolean => ConnectError.from(error).code === Code.Unauthenticated;
