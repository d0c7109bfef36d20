import { randomUUID } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type Client, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { CoreSessions, repeatUnprocessed } from '../../common/core-connection.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { ApiKeyScope, ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditService } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { ConsumerService } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { DirectoryService, MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { type Lead, LeadIntakeService, LeadView } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { RequestLogService } from '../../proto/gen/leadintake/v1/request_log_pb.ts';
import type { StudioWithKey } from '../tools/served-service.ts';
import { DAY_MS } from './builders.ts';

export type { StudioWithKey } from '../tools/served-service.ts';

/** Clients of a core's services, as the CRM uses them. */
export interface CoreClients {
  readonly leads: Client<typeof LeadIntakeService>;
  readonly apiKeys: Client<typeof ApiKeyService>;
  readonly directory: Client<typeof DirectoryService>;
  readonly consumers: Client<typeof ConsumerService>;
  readonly audit: Client<typeof AuditService>;
  readonly requestLog: Client<typeof RequestLogService>;
  readonly exchange: Client<typeof ExchangeService>;
  readonly health: Client<typeof Health>;
  /** Closes the connection and aborts calls in flight. */
  close(): void;
}

/**
 * Connects to a core. The caller must close the connection.
 *
 * @param tls the client certificate, and the authority that the core's certificate is checked against
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
    interceptors: [...(token === undefined ? [] : [presentToken]), repeatUnprocessed],
  });
  return {
    leads: createClient(LeadIntakeService, transport),
    apiKeys: createClient(ApiKeyService, transport),
    directory: createClient(DirectoryService, transport),
    consumers: createClient(ConsumerService, transport),
    audit: createClient(AuditService, transport),
    requestLog: createClient(RequestLogService, transport),
    exchange: createClient(ExchangeService, transport),
    health: createClient(Health, transport),
    close: () => sessionManager.abort(),
  };
}

/** All scopes of API keys. */
export const BOTH_SCOPES: readonly ApiKeyScope[] = [ApiKeyScope.LEADS_READ, ApiKeyScope.LEADS_CREATE];

/** Options of a test studio. By default its key has all scopes and expires after a day. */
export interface StudioOptions {
  readonly scopes?: readonly ApiKeyScope[];
  readonly regionCode?: string;
  readonly expiresInMs?: number;
}

/** Creates a studio with a new id. */
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

/** Returns all leads of a studio, with their contacts, as listed by the core. */
export async function allLeads({ leads }: Pick<CoreClients, 'leads'>, studioId: string): Promise<Lead[]> {
  const all: Lead[] = [];
  let pageToken = '';
  do {
    const page = await leads.listLeads({ studioId, pageSize: 100, pageToken, view: LeadView.FULL });
    all.push(...page.leads);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return all;
}
