import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { newId } from '../../src/domain/new-id.ts';
import { DAY_MS } from './builders.ts';
import type { GrpcCaller } from './grpc.ts';

/** All scopes of API keys. */
const BOTH_SCOPES = ['API_KEY_SCOPE_LEADS_CREATE', 'API_KEY_SCOPE_LEADS_READ'];

/** The member who issues the keys. */
const ISSUER = 'owner-1';

/** Creates a studio with a new id. */
export async function putStudio(caller: GrpcCaller): Promise<string> {
  const id = `studio-${newId()}`;
  await caller.call('DirectoryService/PutStudio', { studio: { id, status: 'STUDIO_STATUS_ACTIVE' } });
  return id;
}

/** Creates a source of a studio. */
export async function putSource(caller: GrpcCaller, studioId: string, enabled = true): Promise<string> {
  const id = newId();
  await caller.call('DirectoryService/PutLeadSource', { leadSource: { studioId, id, name: 'Form', enabled } });
  return id;
}

/** A key, with the ids that name it in calls of ApiKeyService. */
export interface KeyOfStudio {
  readonly owner: { readonly studioId: string; readonly memberId: string; readonly apiKeyId: string };
  readonly secretSha256: Buffer;
}

/** Creates a key, by default for a new studio, with all scopes and an expiry after a day. */
export async function createKey(
  caller: GrpcCaller,
  { studioId = '', scopes = BOTH_SCOPES } = {},
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
      expireTime: { seconds: Math.floor((Date.now() + DAY_MS) / 1000) },
    },
  );
  return { owner: { ...owner, apiKeyId: apiKey.id }, secretSha256: createHash('sha256').update(secret).digest() };
}

/** Revokes a key. */
export const revokeKey = (caller: GrpcCaller, { owner }: KeyOfStudio) =>
  caller.call('ApiKeyService/RevokeApiKey', owner);

/** Counts the leads of studios whose id matches a pattern of LIKE, by reading the database file. */
export function countLeads(path: string, studioId: string): number {
  const database = new DatabaseSync(path, { readOnly: true });
  const row = database
    .prepare(`SELECT count(*) AS count FROM leads JOIN studio_numbers ON studio_numbers.number = studio_number
      WHERE studio_id LIKE ?`)
    .get(studioId);
  database.close();
  return row?.count as number;
}
