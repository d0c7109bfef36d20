import { randomUUID } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type Client, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { CoreSessions } from '../../gateway/core-sessions.ts';
import { ApiKeyScope, ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditService } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { DirectoryService, MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { DAY_MS } from './builders.ts';

/** A core's services, as the CRM calls them. */
export interface CoreClients {
  readonly leads: Client<typeof LeadIntakeService>;
  readonly apiKeys: Client<typeof ApiKeyService>;
  readonly directory: Client<typeof DirectoryService>;
  readonly audit: Client<typeof AuditService>;
  readonly exchange: Client<typeof ExchangeService>;
  /** Ends the connection, and what is under way. */
  close(): void;
}

/**
 * Connects to a core. Whoever does must close it.
 *
 * @param tls what is shown to a core that wants to see a certificate, and whom one takes for it
 */
export function connectToCore(coreUrl: string, token?: string, tls: SecureContextOptions = {}): CoreClients {
  const sessionManager = new CoreSessions(coreUrl, {}, tls);
  const presentToken: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`);
    return next(request);
  };
  const transport = createConnectTransport({
    baseUrl: coreUrl,
    httpVersion: '2',
    sessionManager,
    interceptors: token === undefined ? [] : [presentToken],
  });
  return {
    leads: createClient(LeadIntakeService, transport),
    apiKeys: createClient(ApiKeyService, transport),
    directory: createClient(DirectoryService, transport),
    audit: createClient(AuditService, transport),
    exchange: createClient(ExchangeService, transport),
    close: () => sessionManager.abort(),
  };
}

/** A studio with one owner, one enabled source, and one key that the owner issued. */
export interface StudioWithKey {
  readonly studioId: string;
  readonly memberId: string;
  readonly sourceId: string;
  readonly apiKeyId: string;
  readonly secret: string;
}

/** Everything that a key can allow. */
export const BOTH_SCOPES: readonly ApiKeyScope[] = [ApiKeyScope.LEADS_READ, ApiKeyScope.LEADS_CREATE];

/** What a studio is to be like; unless told, its key may do everything, for a day. */
export interface StudioOptions {
  readonly scopes?: readonly ApiKeyScope[];
  readonly regionCode?: string;
  readonly expiresInMs?: number;
}

/** Arranges a studio that nobody else knows. */
export async function arrangeStudio(
  { apiKeys, directory }: CoreClients,
  { scopes = BOTH_SCOPES, regionCode, expiresInMs = DAY_MS }: StudioOptions = {},
): Promise<StudioWithKey> {
  const studioId = `studio-${randomUUID()}`;
  const memberId = 'owner-1';
  const sourceId = randomUUID();
  await directory.putStudio({
    studio: { id: studioId, status: StudioStatus.ACTIVE, ...(regionCode !== undefined && { regionCode }) },
  });
  await directory.putMember({ member: { studioId, id: memberId, role: MemberRole.OWNER } });
  await directory.putLeadSource({ leadSource: { studioId, id: sourceId, name: 'Web form', enabled: true } });
  const { apiKey, secret } = await apiKeys.createApiKey({
    studioId,
    memberId,
    name: 'Website',
    scopes: [...scopes],
    expireTime: timestampFromMs(Date.now() + expiresInMs),
  });
  return { studioId, memberId, sourceId, apiKeyId: apiKey?.id ?? '', secret };
}
