import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { newId } from '../../src/domain/new-id.ts';
import { DAY_MS, plus } from './builders.ts';
import type { GrpcCaller } from './grpc.ts';

/** Everything that a key can allow. */
const BOTH_SCOPES = ['API_KEY_SCOPE_LEADS_CREATE', 'API_KEY_SCOPE_LEADS_READ'];

/** Who issues the keys. */
const ISSUER = 'owner-1';

/** A studio that nobody else knows. */
export async function putStudio(caller: GrpcCaller): Promise<string> {
  const id = `studio-${newId()}`;
  await caller.call('DirectoryService/PutStudio', { studio: { id, status: 'STUDIO_STATUS_ACTIVE' } });
  return id;
}

/** A source of a studio. */
export async function putSource(caller: GrpcCaller, studioId: string, enabled = true): Promise<string> {
  const id = newId();
  await caller.call('DirectoryService/PutLeadSource', { leadSource: { studioId, id, name: 'Form', enabled } });
  return id;
}

/** A key, and what its owner is called where keys are kept. */
export interface KeyOfStudio {
  readonly owner: { readonly studioId: string; readonly memberId: string; readonly apiKeyId: string };
  readonly secretSha256: Buffer;
}

/** A key of a studio, of a new one unless told; unless told, it may do everything, for a day. */
export async function createKey(
  caller: GrpcCaller,
  { studioId = '', scopes = BOTH_SCOPES, expiresAt = plus(new Date(), DAY_MS) } = {},
): Promise<KeyOfStudio> {
  const owner = { studioId: studioId || (await putStudio(caller)), memberId: ISSUER };
  await caller.call('DirectoryService/PutMember', {
    member: { studioId: owner.studioId, id: owner.memberId, role: 'MEMBER_ROLE_OWNER' },
  });
  const { apiKey, secret } = await caller.call<{ apiKey: { id: string }; secret: string }>(
    'ApiKeyService/CreateApiKey',
    {
      ...owner,
      name: 'Website',
      scopes,
      expireTime: {
        seconds: Math.floor(expiresAt.getTime() / 1000),
        nanos: (expiresAt.getTime() % 1000) * 1e6,
      },
    },
  );
  return { owner: { ...owner, apiKeyId: apiKey.id }, secretSha256: createHash('sha256').update(secret).digest() };
}

/** Revokes a key. */
export const revokeKey = (caller: GrpcCaller, { owner }: KeyOfStudio) =>
  caller.call('ApiKeyService/RevokeApiKey', owner);

/** Suspends the studio of a key. */
export const suspendStudio = (caller: GrpcCaller, { owner }: KeyOfStudio) =>
  caller.call('DirectoryService/PutStudio', { studio: { id: owner.studioId, status: 'STUDIO_STATUS_SUSPENDED' } });

/** Takes its issuer away from a key. */
export const removeIssuer = (caller: GrpcCaller, { owner }: KeyOfStudio) =>
  caller.call('DirectoryService/RemoveMember', owner);

/** How many leads there are of the studios with an id like that, by a look of its own into the database. */
export function countLeads(path: string, studioId: string): number {
  const database = new DatabaseSync(path, { readOnly: true });
  const row = database
    .prepare(`SELECT count(*) AS count FROM leads JOIN studio_numbers ON studio_numbers.number = studio_number
      WHERE studio_id LIKE ?`)
    .get(studioId);
  database.close();
  return row?.count as number;
}
