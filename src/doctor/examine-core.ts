import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import type { GatewayConfig } from '../../gateway/config.ts';
import { presentToken, tlsToCore } from '../../gateway/core-connection.ts';
import { Health, HealthCheckResponse_ServingStatus as Serving } from '../../proto/gen/health/v1/health_pb.ts';
import { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { DOCTOR_MS } from '../runtime/deadlines.ts';
import { inOneLine } from '../runtime/in-one-line.ts';
import { type Finding, Notes } from './finding.ts';

/** Asks the core, as the gateway reaches it, whether it serves and takes the token. */
export async function examineCore(config: GatewayConfig): Promise<readonly Finding[]> {
  const notes = new Notes('core');
  const { CORE_URL } = config;
  const transport = createConnectTransport({
    baseUrl: CORE_URL,
    httpVersion: '2',
    interceptors: presentToken(config),
    nodeOptions: tlsToCore(config),
  });
  try {
    const { status } = await createClient(Health, transport).check({}, { timeoutMs: DOCTOR_MS });
    if (status === Serving.SERVING) notes.well(`at ${CORE_URL} serves`);
    else notes.fault(`at ${CORE_URL} answers, but does not serve: it is stopping, or cannot use its database`);
  } catch (error) {
    notes.fault(
      `at ${CORE_URL} does not answer: ${inOneLine(error)}. Look at CORE_URL, its certificates, and whether it runs`,
    );
    return notes.findings;
  }
  try {
    // Nobody is called so: whoever is let in is told that.
    await createClient(DirectoryService, transport).getStudio({ studioId: 'doctor' }, { timeoutMs: DOCTOR_MS });
  } catch (error) {
    const { code } = ConnectError.from(error);
    if (code === Code.Unauthenticated) notes.fault('does not take this CORE_TOKEN: both processes need the same');
    else if (code !== Code.NotFound) notes.fault(`answers a call with: ${inOneLine(error)}`);
  }
  return notes.findings;
}
