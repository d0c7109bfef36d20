import { isIPv6 } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { Problem } from '../problems.ts';
import { createMemoryQuota } from '../quota/memory-quota.ts';
import { consumePatiently, setQuotaHeaders } from './quota.ts';

/**
 * The number of keys of one address that the core looks up in vain, in a window of some seconds. Keys are well formed
 * with a checksum that is public, so guesses are as cheap as requests. The number is less than half of those that may
 * wait for the core, so that one address sheds no other one's requests.
 */
export const MAX_UNKNOWN_KEYS = 500;
export const UNKNOWN_KEYS_WINDOW_SECONDS = 10;

const LIMITS = { key: MAX_UNKNOWN_KEYS, studio: undefined };

/** @returns a function that looks up a key which this gateway has not seen valid, or rejects with the Problem */
export function unknownKeys() {
  const quota = createMemoryQuota(UNKNOWN_KEYS_WINDOW_SECONDS);
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    lookUp: () => Promise<AuthenticateApiKeyResponse>,
  ): Promise<AuthenticateApiKeyResponse> => {
    const bearer = { apiKeyId: networkOf(request.raw.socket.remoteAddress), studioId: '' };
    const decision = await consumePatiently(quota, bearer, LIMITS);
    if (!decision.admitted) {
      setQuotaHeaders(reply, decision, UNKNOWN_KEYS_WINDOW_SECONDS);
      throw new Problem('integration_rate_limited', {
        detail: `Too many unknown keys came from this address; wait ${decision.resetSeconds} s.`,
        headers: { 'retry-after': String(decision.resetSeconds) },
      });
    }
    return lookUp().then(
      async (caller) => {
        await quota.refund(bearer, decision.windows);
        return caller;
      },
      async (problem) => {
        const isInVain = problem instanceof Problem && problem.code === 'integration_key_invalid';
        if (!isInVain) await quota.refund(bearer, decision.windows);
        throw problem;
      },
    );
  };
}

/** An IPv6 client has a network of 64 bits. */
function networkOf(address = ''): string {
  if (!isIPv6(address) || address.startsWith('::')) return address;
  const [head = ''] = address.split('::', 1);
  return head.split(':').slice(0, 4).join(':');
}
