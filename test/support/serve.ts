/**
 * Runs a core and a gateway for tests that do not import the service: `serve.ts SETTINGS`, with the gateway's settings as
 * JSON. It sends its parent its address and calls, and then a reply to each call. It ends with its parent.
 */
import { randomUUID } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Scope, ServiceCalls, ServiceReply, ServiceRequest } from '../tools/served-service.ts';
import { DAY_MS } from './builders.ts';
import { allLeads, arrangeStudio } from './core-clients.ts';
import { runService } from './running-service.ts';

const { url, clients, stopCore, startCore, dispose } = await runService({
  gateway: JSON.parse(process.argv[2] ?? '{}'),
});

const SCOPES: Readonly<Record<Scope, ApiKeyScope>> = {
  'leads.create': ApiKeyScope.LEADS_CREATE,
  'leads.read': ApiKeyScope.LEADS_READ,
};
const findScopes = (names: readonly Scope[]) => names.map((name) => SCOPES[name]);

const calls: ServiceCalls = {
  aStudioWithKey: ({ scopes } = {}) => arrangeStudio(clients, scopes && { scopes: findScopes(scopes) }),
  aKey: async (owner, scopes) => {
    const expireTime = timestampFromMs(Date.now() + DAY_MS);
    return (await clients.apiKeys.createApiKey({ ...owner, name: 'Pages', scopes: findScopes(scopes), expireTime }))
      .secret;
  },
  revokeKey: async ({ secret: _, ...ids }) => void (await clients.apiKeys.revokeApiKey(ids)),
  suspendStudio: async (id) =>
    void (await clients.directory.putStudio({ studio: { id, status: StudioStatus.SUSPENDED } })),
  demoteOwner: async ({ studioId, memberId: id }) =>
    void (await clients.directory.putMember({ member: { studioId, id, role: MemberRole.STAFF } })),
  readLeads: async (studioId) =>
    (await allLeads(clients, studioId)).map(({ id, displayName, contact, note }) => ({
      id,
      displayName,
      contact: contact?.value.value ?? '',
      note,
    })),
  countLeads: async (studioId) => (await allLeads(clients, studioId)).length,
  importLeads: async (studioId, emails) => {
    const leads = emails.map((value) => ({
      idempotencyKey: randomUUID(),
      displayName: 'Ada Lovelace',
      contact: { value: { case: 'email', value } as const },
    }));
    const { results } = await clients.leads.importLeads({ studioId, leads });
    return results.map(({ outcome }) => (outcome.case === 'imported' ? outcome.value.leadId : ''));
  },
  eraseLead: async (studioId, leadId) => void (await clients.leads.eraseLead({ studioId, leadId })),
  closeLead: async (studioId, leadId) =>
    void (await clients.leads.changeLeadStage({ studioId, leadId, stage: LeadStage.LOST })),
  stopCore,
  startCore: () => startCore(),
};

/** Sends a message to the parent, unless that has gone. */
const reply = (message: ServiceReply) => process.connected && process.send?.(message);

process.on('message', async ({ id, call, args }: ServiceRequest) => {
  try {
    reply({ id, value: await (calls[call] as (...args: unknown[]) => Promise<unknown>)(...args) });
  } catch (error) {
    reply({ id, error: (error as Error).message });
  }
});
process.once('disconnect', async () => {
  await dispose();
  process.exit();
});
reply({ url, calls: Object.keys(calls) as (keyof ServiceCalls)[] });
