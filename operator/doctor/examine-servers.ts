import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { type CoreAccess, CoreSessions, CoreToken, presentToken, tlsToCore } from '../../common/core-connection.ts';
import { DOCTOR_MS } from '../../common/deadlines.ts';
import { errorSummary } from '../../common/error-summary.ts';
import { ALIVE, READY } from '../../common/probe-answers.ts';
import { TlsCredentials } from '../../common/tls-credentials.ts';
import { openQuota } from '../../gateway/admission/quota/open-quota.ts';
import {
  clusterClient,
  firstConnection,
  type RedisClient,
  singleClient,
} from '../../gateway/admission/quota/redis-client.ts';
import type { GatewayConfig } from '../../gateway/config.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { Health, HealthCheckResponse_ServingStatus as Serving } from '../../proto/gen/health/v1/health_pb.ts';
import { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { RelayConfig } from '../../relay/config.ts';
import type { Notes } from './finding.ts';

const UNKNOWN_TOKEN =
  'does not accept this CORE_TOKEN: give it the same token, or add the hash of this one to the file of CORE_CALLERS_FILE';
const MISSING_ROLE = 'refuses this caller as a gateway: add the role `gateway` in the file of CORE_CALLERS_FILE';

/** Creates a transport to the core of a process, with its credentials. */
const createTransport = (config: CoreAccess) =>
  createConnectTransport({
    baseUrl: config.CORE_URL,
    httpVersion: '2',
    interceptors: [presentToken(new CoreToken(config))],
    sessionManager: new CoreSessions(config.CORE_URL, {}, new TlsCredentials(tlsToCore(config)).loaded.pem),
  });

/** Checks that the core has a consumer for each endpoint of the relay, and accepts the relay as that consumer. */
export async function examineFeed(notes: Notes, config: RelayConfig): Promise<void> {
  const transport = createTransport(config);
  const leads = createClient(LeadIntakeService, transport);
  for (const consumer of config.RELAY_ENDPOINTS_FILE.endpoints.keys()) {
    try {
      // A relay makes the same call. Without acknowledgements, the call changes nothing.
      await leads.acknowledgeLeadChanges({ consumer, acknowledgements: [] }, { timeoutMs: DOCTOR_MS });
      notes.ok(`has the consumer ${consumer}, for the endpoint of that name`);
    } catch (error) {
      const { code } = ConnectError.from(error);
      if (code !== Code.NotFound && code !== Code.PermissionDenied)
        return notes.fault(`at ${config.CORE_URL} gives no changes: ${errorSummary(error)}. Check it, and RELAY_TOKEN`);
      notes.fault(
        `has no consumer ${consumer} for this caller (${errorSummary(error)}): create it, and name it in the callers file, with the role \`feed\``,
      );
    }
  }
}

/** Checks that the core serves, and accepts the gateway's token. */
export async function examineCore(notes: Notes, config: GatewayConfig): Promise<void> {
  const { CORE_URL } = config;
  let isConnected = false;
  try {
    const transport = createTransport(config);
    const service = ExchangeService.typeName;
    const { status } = await createClient(Health, transport).check({ service }, { timeoutMs: DOCTOR_MS });
    isConnected = true;
    if (status === Serving.SERVING) notes.ok(`at ${CORE_URL} serves`);
    else
      notes.fault(`at ${CORE_URL} answers, but does not serve: it is stopping or cannot use its database; see its log`);
    // The health check also admits callers without a token. This call admits only gateways, which get KEY_INVALID: no secret has this hash.
    const secretSha256 = new Uint8Array(32);
    await createClient(ApiKeyService, transport).authenticateApiKey({ secretSha256 }, { timeoutMs: DOCTOR_MS });
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    if (isConnected && error.findDetails(ErrorInfoSchema)[0]?.reason === 'KEY_INVALID') return;
    if (error.code === Code.Unauthenticated) notes.fault(UNKNOWN_TOKEN);
    else if (error.code === Code.PermissionDenied) notes.fault(MISSING_ROLE);
    else if (isConnected) notes.fault(`fails a call: ${errorSummary(thrown)}; see its log`);
    else
      notes.fault(
        `at ${CORE_URL} does not answer: ${errorSummary(thrown)}. Check CORE_URL, its certificates, and that it is running`,
      );
  }
}

/** Checks that Redis counts requests, as a gateway's readiness check does. */
export async function examineRedis(notes: Notes, config: GatewayConfig): Promise<void> {
  const { REDIS_URL, REDIS_CLUSTER } = config;
  if (!REDIS_URL)
    return notes.warning('is not set, so each gateway counts on its own: run one gateway only, or set REDIS_URL');
  const url = REDIS_URL.reveal();
  const quota = await openQuota(config.QUOTA_WINDOW_SECONDS, url, REDIS_CLUSTER, config.REDIS_KEY_PREFIX);
  try {
    // The first check connects to each node of a cluster, which may take longer than a count.
    const first = await quota.fault();
    const requestedAt = Date.now();
    const fault = await quota.fault();
    const share = quota.countedShare();
    if (fault !== undefined)
      return notes.fault(
        `${(first ?? fault).replace(/^Redis /, '')}. Check REDIS_URL, its password, the rights of its user, and whether it is a cluster, a replica or full`,
      );
    notes.ok(`counted within ${Date.now() - requestedAt} ms; every request waits for it`);
    if (share < 1)
      notes.fault(`counts for ${Math.round(100 * share)} % of the studios only: look for nodes that are down or full`);
    notePolicy(notes, await readRedisMemory(REDIS_CLUSTER ? clusterClient(url) : singleClient(url)));
  } finally {
    await quota.close();
  }
}

/** Returns what Redis reports about its memory, or undefined if this user may not ask. Closes the connection. */
async function readRedisMemory(redis: RedisClient): Promise<string | undefined> {
  redis.on('error', () => {});
  try {
    await firstConnection(redis);
    return await redis.info('memory');
  } catch {
    return undefined;
  } finally {
    redis.disconnect();
  }
}

/** @param memory undefined if the user may not ask for it, which a gateway does not need */
function notePolicy(notes: Notes, memory: string | undefined): void {
  if (memory === undefined) notes.ok('does not let this user see its maxmemory-policy, which must be noeviction');
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory ?? '')?.[1];
  if (policy !== undefined && policy !== 'noeviction') {
    notes.warning(
      `forgets keys when its memory is full (${policy}), and the counts of requests with them: set maxmemory-policy to noeviction`,
    );
  }
}

/** Checks that the gateway is ready at its public address. */
export async function examineGateway(notes: Notes, publicUrl: string): Promise<void> {
  const ask = async (path: string) => {
    const response = await fetch(publicUrl + path, { signal: AbortSignal.timeout(DOCTOR_MS) });
    return { status: response.status, says: response.status === 200 ? await response.text() : '' };
  };
  try {
    const alive = await ask('/healthz');
    if (alive.status >= 500) {
      notes.fault(
        `at ${publicUrl}/healthz does not answer: the proxy in front of it answers ${alive.status}. Check that a gateway runs and is ready, and that the balancer or proxy reaches it`,
      );
    } else if (alive.says !== JSON.stringify(ALIVE)) {
      notes.fault(
        `at ${publicUrl}/healthz answers ${alive.status}, but not as a gateway does: check that PUBLIC_URL is the address of the gateway`,
      );
    } else if ((await ask('/readyz')).says === JSON.stringify(READY)) notes.ok(`at ${publicUrl} is ready`);
    else
      notes.fault(`at ${publicUrl} runs, but is not ready: see its log; the core or the quota store does not answer`);
  } catch (error) {
    notes.fault(`at ${publicUrl} does not answer: ${errorSummary(error)}. Check PUBLIC_URL, and that it is running`);
  }
}
