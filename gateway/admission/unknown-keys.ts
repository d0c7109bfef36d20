import { isIPv6 } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { textOfHash } from '../../common/rules/key-secret.ts';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { Problem } from '../problems.ts';
import { consumePatiently, setQuotaHeaders } from './count-quota.ts';
import { createMemoryQuota } from './quota/memory-quota.ts';

/**
 * The number of different keys of one address that the core looks up in vain, in a window of some seconds. A website that
 * goes on with a key of yesterday is one of them, however often it sends: it takes nothing from others behind its address. Keys are well formed
 * with a checksum that is public, so guesses are as cheap as requests. The number is less than half of those that may
 * wait for the core, so that one address sheds no other one's requests.
 */
export const MAX_UNKNOWN_KEYS = 500;
export const UNKNOWN_KEYS_WINDOW_SECONDS = 10;

/** The maximum number of keys that are remembered as counted; the others count again. */
const MAX_COUNTED_KEYS = 50_000;

const LIMITS = { key: MAX_UNKNOWN_KEYS, studio: undefined };

/** @returns a function that looks up a key which this gateway has not seen valid, or rejects with the Problem */
export function unknownKeys() {
  const quota = createMemoryQuota(UNKNOWN_KEYS_WINDOW_SECONDS);
  /** By network and key, when the key was counted. */
  const counted = new Map<string, number>();
  return async (
    secretSha256: Uint8Array,
    request: FastifyRequest,
    reply: FastifyReply,
    lookUp: () => Promise<AuthenticateApiKeyResponse>,
  ): Promise<AuthenticateApiKeyResponse> => {
    const network = networkOf(request.raw.socket.remoteAddress);
    const name = `${network} ${textOfHash(secretSha256)}`;
    forgetOld(counted);
    if (counted.has(name)) return lookUp();
    const bearer = { apiKeyId: network, studioId: '' };
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
        else if (counted.size < MAX_COUNTED_KEYS) counted.set(name, performance.now());
        throw problem;
      },
    );
  };
}

/** Forgets keys whose window has passed; the oldest come first. */
function forgetOld(counted: Map<string, number>): void {
  const oldest = performance.now() - UNKNOWN_KEYS_WINDOW_SECONDS * 1000;
  for (const [name, since] of counted) {
    if (since > oldest) return;
    counted.delete(name);
  }
}

/** An IPv6 client has a network of 64 bits. */
function networkOf(address = ''): string {
  if (!isIPv6(address) || address.startsWith('::')) return address;
  const [head = ''] = address.split('::', 1);
  return head.split(':').slice(0, 4).join(':');
}
