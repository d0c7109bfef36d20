import type { ServiceImpl } from '@connectrpc/connect';
import { ApiKeyService, type AuthenticateApiKeyRequest } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { createApiKey, listApiKeys, replaceApiKey, revokeApiKey } from '../usecases/manage-api-keys.ts';
import { answerBatches } from './batches.ts';
import { operationOf } from './call.ts';
import { apiKeyScope, apiKeyToWire, dateFromWire, keyToWire } from './convert.ts';
import type { ItemContext } from './items.ts';

/** API keys over RPC. */
export function apiKeyService(deps: Dependencies, context: ItemContext): ServiceImpl<typeof ApiKeyService> {
  return {
    async createApiKey({ studioId, memberId, name, scopes, expireTime }) {
      const { key, secret } = await createApiKey(deps, {
        studioId,
        memberId,
        name,
        scopes: scopes.map(apiKeyScope.fromWire),
        expiresAt: dateFromWire(expireTime),
      });
      return { apiKey: apiKeyToWire(key), secret };
    },

    async listApiKeys({ studioId, memberId }) {
      return { apiKeys: (await listApiKeys(deps, { studioId, memberId })).map(apiKeyToWire) };
    },

    async replaceApiKey({ studioId, memberId, apiKeyId, expireTime }) {
      const command = { studioId, memberId, keyId: apiKeyId, expiresAt: dateFromWire(expireTime) };
      const { key, secret } = await replaceApiKey(deps, command);
      return { apiKey: apiKeyToWire(key), secret };
    },

    async revokeApiKey({ studioId, memberId, apiKeyId }) {
      return { apiKey: apiKeyToWire(await revokeApiKey(deps, { studioId, memberId, keyId: apiKeyId })) };
    },

    authenticateApiKey: authenticate,
    batchAuthenticateApiKeys: (batches, handler) =>
      answerBatches(
        batches,
        context,
        { operation: operationOf(ApiKeyService.method.authenticateApiKey), answer: authenticate },
        handler,
      ),
  };

  async function authenticate({ secretSha256 }: AuthenticateApiKeyRequest) {
    return keyToWire((await context.authenticate(secretSha256)).key);
  }
}
