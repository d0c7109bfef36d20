import type { ServiceImpl } from '@connectrpc/connect';
import type { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { createApiKey, listApiKeys, replaceApiKey, revokeApiKey } from '../usecases/manage-api-keys.ts';
import { actorOf, callerOf, memberOrOperator } from './caller-access.ts';
import { apiKeyScope, apiKeyToWire, bearerToWire, dateFromWire } from './convert.ts';
import type { ExchangeContext } from './exchange-service.ts';

export function apiKeyService(
  deps: Dependencies,
  { authenticate }: Pick<ExchangeContext, 'authenticate'>,
): ServiceImpl<typeof ApiKeyService> {
  return {
    async createApiKey({ studioId, memberId, name, scopes, expireTime }, context) {
      const { key, secret } = await createApiKey(deps, {
        studioId,
        memberId,
        name,
        scopes: scopes.map(apiKeyScope.fromWire),
        expiresAt: dateFromWire(expireTime),
        ...actorOf(context),
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
      const command = { studioId, memberId, keyId: apiKeyId, expiresAt, ...actorOf(context) };
      const { key, secret } = await replaceApiKey(deps, command);
      return { apiKey: apiKeyToWire(key), secret };
    },

    async revokeApiKey({ studioId, memberId, apiKeyId }, context) {
      const manager = { studioId, memberId: memberOrOperator(memberId, context) };
      const command = { ...manager, keyId: apiKeyId, ...actorOf(context) };
      return { apiKey: apiKeyToWire(await revokeApiKey(deps, command)) };
    },

    async authenticateApiKey({ secretSha256 }, context) {
      return bearerToWire(await authenticate(secretSha256, undefined, callerOf(context).studios));
    },
  };
}
