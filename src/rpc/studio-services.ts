import type { FieldMask } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { type DirectoryService, type Studio, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { Faults } from '../domain/refusal.ts';
import type { BearerAuthenticator } from '../usecases/authenticate-api-key.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { EndedStudios, eraseStudio } from '../usecases/erase-studio.ts';
import { createApiKey, listApiKeys, putApiKeyQuota, replaceApiKey, revokeApiKey } from '../usecases/manage-api-keys.ts';
import {
  listLeadSources,
  putLeadSource,
  putMember,
  removeLeadSource,
  removeMember,
} from '../usecases/members-and-sources.ts';
import { emptyStudio, getStudio, listStudios, type PutStudioCommand, putStudio } from '../usecases/studios.ts';
import { memberOrOperator, readActor, readCaller } from './callers.ts';
import {
  apiKeyScope,
  apiKeyToWire,
  bearerToWire,
  dateFromWire,
  leadSourceToWire,
  memberRole,
  memberToWire,
  studioStatus,
  studioToWire,
} from './convert.ts';

export function apiKeyService(
  deps: Dependencies,
  authenticate: BearerAuthenticator,
): ServiceImpl<typeof ApiKeyService> {
  return {
    async createApiKey({ studioId, memberId, name, scopes, expireTime }, context) {
      const { key, secret } = await createApiKey(deps, {
        studioId,
        memberId,
        name,
        scopes: scopes.map(apiKeyScope.fromWire),
        expiresAt: dateFromWire(expireTime),
        ...readActor(context),
      });
      return { apiKey: apiKeyToWire(key), secret };
    },

    async listApiKeys({ studioId, memberId, pageSize, pageToken }, context) {
      const manager = { studioId, memberId: memberOrOperator(memberId, context) };
      const { apiKeys, nextPageToken } = await listApiKeys(deps, { ...manager, pageSize, pageToken });
      return { apiKeys: apiKeys.map(apiKeyToWire), nextPageToken };
    },

    async replaceApiKey({ studioId, memberId, apiKeyId, expireTime }, context) {
      const expiresAt = dateFromWire(expireTime);
      const command = { studioId, memberId, keyId: apiKeyId, expiresAt, ...readActor(context) };
      const { key, secret } = await replaceApiKey(deps, command);
      return { apiKey: apiKeyToWire(key), secret };
    },

    async revokeApiKey({ studioId, memberId, apiKeyId }, context) {
      const manager = { studioId, memberId: memberOrOperator(memberId, context) };
      const command = { ...manager, keyId: apiKeyId, ...readActor(context) };
      return { apiKey: apiKeyToWire(await revokeApiKey(deps, command)) };
    },

    async authenticateApiKey({ secretSha256 }, context) {
      return bearerToWire(await authenticate(secretSha256, undefined, readCaller(context).studios));
    },
  };
}

export function directoryService(deps: Dependencies): ServiceImpl<typeof DirectoryService> {
  const endedStudios = new EndedStudios();
  return {
    async putStudio({ studio, memberId, updateMask, requestId }, context) {
      const command = studio && { ...studioPut(studio, memberId, updateMask), requestId, ...readActor(context) };
      return { studio: studioToWire(await putStudio(deps, command)) };
    },

    emptyStudio: ({ studioId }, context) => emptyStudio(deps, { studioId, ...readActor(context) }),

    async eraseStudio(request, context) {
      const { erasedLeadCount, ...report } = await eraseStudio(deps, endedStudios, {
        ...request,
        ...readActor(context),
      });
      return { ...report, erasedLeadCount: BigInt(erasedLeadCount) };
    },

    async getStudio({ studioId }) {
      return { studio: studioToWire(await getStudio(deps, studioId)) };
    },

    async listStudios({ pageSize, pageToken }) {
      const { studios, nextPageToken } = await listStudios(deps, { pageSize, pageToken });
      return { studios: studios.map(studioToWire), nextPageToken };
    },

    async putApiKeyQuota({ studioId, apiKeyId, quotaLimit, memberId, requestId }, context) {
      const command = { studioId, keyId: apiKeyId, quotaLimit, memberId, requestId, ...readActor(context) };
      return { apiKey: apiKeyToWire(await putApiKeyQuota(deps, command)) };
    },

    async putMember({ member, actingMemberId, requestId }, context) {
      const role = member && memberRole.fromWire(member.role);
      const command = member && { ...member, role, actingMemberId, requestId, ...readActor(context) };
      const stored = await putMember(deps, command);
      return stored ? { member: memberToWire(stored) } : {};
    },

    async removeMember({ studioId, memberId, actingMemberId, requestId }, context) {
      const command = { studioId, memberId, actingMemberId, requestId, ...readActor(context) };
      const removed = await removeMember(deps, command);
      return removed ? { member: memberToWire(removed) } : {};
    },

    async putLeadSource({ leadSource, requestId }, context) {
      const stored = await putLeadSource(deps, leadSource && { ...leadSource, requestId, ...readActor(context) });
      return stored ? { leadSource: leadSourceToWire(stored) } : {};
    },

    async removeLeadSource({ studioId, leadSourceId, requestId }, context) {
      const command = { studioId, sourceId: leadSourceId, requestId, ...readActor(context) };
      const removed = await removeLeadSource(deps, command);
      return removed ? { leadSource: leadSourceToWire(removed) } : {};
    },

    async listLeadSources({ studioId, pageSize, pageToken }) {
      const { sources, nextPageToken } = await listLeadSources(deps, { studioId, pageSize, pageToken });
      return { leadSources: sources.map(leadSourceToWire), nextPageToken };
    },
  };
}

/** The fields that an update mask may name. */
const STUDIO_FIELDS = ['status', 'region_code', 'quota_limit', 'keep_enquiries', 'retention_days', 'is_test'];

/** Returns the changes of a studio: the fields in the mask, or without a mask the present ones. */
function studioPut(studio: Studio, memberId: string | undefined, mask: FieldMask | undefined): PutStudioCommand {
  const { id, status, regionCode, quotaLimit, keepEnquiries, retentionDays, isTest } = studio;
  const faults = new Faults();
  const isUnknown = (path: string) => !STUDIO_FIELDS.includes(path);
  if (mask?.paths.some(isUnknown)) faults.note('updateMask', `must name ${STUDIO_FIELDS.join(', ')} only`);
  faults.refuseIfAny();
  const changes = (path: string, isGiven: boolean) => (mask?.paths.length ? mask.paths.includes(path) : isGiven);
  return {
    id,
    status: changes('status', status !== StudioStatus.UNSPECIFIED) ? studioStatus.fromWire(status) : 'unchanged',
    regionCode: changes('region_code', regionCode !== undefined) ? (regionCode ?? null) : undefined,
    quotaLimit: changes('quota_limit', quotaLimit !== undefined) ? (quotaLimit ?? null) : undefined,
    keepEnquiries: changes('keep_enquiries', keepEnquiries !== undefined) ? (keepEnquiries ?? true) : undefined,
    retentionDays: changes('retention_days', retentionDays !== undefined) ? (retentionDays ?? null) : undefined,
    isTest: changes('is_test', isTest) ? isTest : undefined,
    memberId,
  };
}
