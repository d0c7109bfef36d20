import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CORE_CALL_MS } from '../../common/deadlines.ts';
import { hashKeySecret, hintOf, isKeySecret, textOfHash } from '../../common/rules/key-secret.ts';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { clientNetwork } from '../client-address.ts';
import { OVERLOADED, Problem } from '../problems.ts';
import type { PresentedKey } from '../request.ts';
import { consumePatiently, rateLimited, setQuotaHeaders } from './count-quota.ts';
import type { FoundKey, KeyLookUps } from './key-look-ups.ts';
import { createMemoryQuota } from './quota/memory-quota.ts';

/**
 * Identifies the caller. The core validates the key on every request, so a replaced or revoked one stops working
 * immediately: a key that is not cached before anything else; a cached one together with the operation, which saves a
 * round trip (`checkKeyBeforeRefusal` handles requests that are refused before).
 *
 * @returns a function that throws, or rejects with, the Problem for the caller
 * @rule 3.2.replaced 5.2 5.7 5.8
 */
export function authenticator(
  lookUps: KeyLookUps,
  cache: ApiKeyCache,
): (request: FastifyRequest, reply: FastifyReply) => PresentedKey | Promise<PresentedKey> {
  const ask = (secretSha256: Uint8Array, requestId: string) => lookUps.find({ secretSha256, requestId });
  const askUnlessTooMany = unknownKeys(ask);
  return (request, reply) => {
    const secret = secretOf(request);
    // A malformed key is refused here, so guesses cost the core nothing.
    if (secret === undefined || !isKeySecret(secret)) throw new Problem('integration_key_invalid');
    const secretSha256 = hashKeySecret(secret);
    const caller = cache.get(secretSha256);
    const presented = { secretSha256, secretHint: hintOf(secret), countedIn: undefined };
    if (caller) return { ...presented, caller, isChecked: false };
    const found = cache.wasValid(secretSha256)
      ? ask(secretSha256, request.id)
      : askUnlessTooMany(secretSha256, request, reply);
    return found.then((key) => {
      cache.set(secretSha256, key.caller);
      return { ...presented, ...key };
    });
  };
}

// @rule 5.1 5.5 5.header
function secretOf(request: FastifyRequest): string | undefined {
  // Of several headers, Node silently uses the first.
  const [authorization, ...more] = request.raw.headersDistinct.authorization ?? [];
  if (authorization === undefined || more.length > 0) return undefined;
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}

/** The maximum number of entries; the oldest is evicted first. */
export const MAX_CACHED_KEYS = 50_000;

/**
 * Caches what rarely or never changes about an API key: its id, studio and scopes, and the quotas. Because quotas can
 * change, an entry expires after a fixed time, however often it is used. The cache does not say whether a key is still
 * valid; that can change at any moment.
 */
export class ApiKeyCache {
  readonly #entries = new Map<string, { readonly caller: AuthenticateApiKeyResponse; readonly expiresAtMs: number }>();
  readonly #ttlMs: number;
  readonly #clock: () => number;

  /** @param clock milliseconds since any moment; never goes back */
  constructor(ttlMs: number, clock = () => performance.now()) {
    this.#ttlMs = ttlMs;
    this.#clock = clock;
  }

  get(secretSha256: Uint8Array): AuthenticateApiKeyResponse | undefined {
    const entry = this.#entries.get(textOfHash(secretSha256));
    return entry && this.#clock() < entry.expiresAtMs ? entry.caller : undefined;
  }

  /** Whether the key was valid when it was last looked up, however long ago. */
  wasValid(secretSha256: Uint8Array): boolean {
    return this.#entries.has(textOfHash(secretSha256));
  }

  set(secretSha256: Uint8Array, caller: AuthenticateApiKeyResponse): void {
    this.#entries.set(textOfHash(secretSha256), { caller, expiresAtMs: this.#clock() + this.#ttlMs });
    if (this.#entries.size <= MAX_CACHED_KEYS) return;
    const [oldest = ''] = this.#entries.keys();
    this.#entries.delete(oldest);
  }

  delete(secretSha256: Uint8Array): void {
    this.#entries.delete(textOfHash(secretSha256));
  }
}

/**
 * The number of different keys of one address that the core looks up in vain, in a window of some seconds. A website that
 * goes on with a key of yesterday is one of them, however often it sends: it takes nothing from others behind its address.
 * Keys are well formed with a checksum that is public, so guesses are as cheap as requests. The number is less than half of
 * those that may wait for the core, so that one address sheds no other one's requests.
 */
export const MAX_UNKNOWN_KEYS = 500;
export const UNKNOWN_KEYS_WINDOW_SECONDS = 10;

/**
 * The number of unknown keys of one address that are looked up at once; further ones wait. Fewer than may be in vain, so that
 * keys which are new to a gateway that has just begun are not refused for one another, however slow the core is.
 */
const MAX_LOOK_UPS_AT_ONCE = MAX_UNKNOWN_KEYS / 2;

/** The maximum number of keys that are remembered as counted; the others count again. */
const MAX_COUNTED_KEYS = 50_000;

const LIMITS = { key: MAX_UNKNOWN_KEYS, studio: undefined };

/** What is counted in these quotas: a client's network in place of a key. */
const callerOf = (network: string) => ({ apiKeyId: network, studioId: '' });

/**
 * How long a refusal waits, more or less, of an address that has too many that no quota counts. So a flood on hundreds of
 * connections becomes a trickle, and leaves the processor to the requests of others.
 */
export const HELD_REFUSAL_MS = 1000;

const MAX_HELD_MS = 1.5 * HELD_REFUSAL_MS;

/** Those that came together do not end together. */
const holdRefusal = (): Promise<void> => sleep(MAX_HELD_MS - HELD_REFUSAL_MS * Math.random());

/** @returns a function that waits before a refusal that no quota counts, if its address has too many of them */
export function uncountedRefusals(): (request: FastifyRequest) => Promise<void> {
  const quota = createMemoryQuota(UNKNOWN_KEYS_WINDOW_SECONDS);
  return async (request) => {
    const { admitted } = await quota.consume(callerOf(clientNetwork(request)), LIMITS);
    if (!admitted) await holdRefusal();
  };
}

/** @returns a function that looks up a key which this gateway has not seen valid, or rejects with the Problem */
function unknownKeys(lookUp: (secretSha256: Uint8Array, requestId: string) => Promise<FoundKey>) {
  const quota = createMemoryQuota(UNKNOWN_KEYS_WINDOW_SECONDS);
  /** By network and key, when the key was counted. */
  const counted = new Map<string, number>();
  /** The number of look-ups under way, by network. */
  const underWay = new Map<string, number>();
  const count = (network: string, change: 1 | -1) => {
    const number = (underWay.get(network) ?? 0) + change;
    if (number > 0) underWay.set(network, number);
    else underWay.delete(network);
  };
  const begin = async (network: string) => {
    count(network, 1);
    const decision = await consumePatiently(quota, callerOf(network), LIMITS);
    if (!decision.admitted) count(network, -1);
    return decision;
  };
  return async (secretSha256: Uint8Array, request: FastifyRequest, reply: FastifyReply) => {
    const network = clientNetwork(request);
    const name = `${network} ${textOfHash(secretSha256)}`;
    forgetOld(counted);
    if (counted.has(name)) return lookUp(secretSha256, request.id);
    const giveUpAt = performance.now() + CORE_CALL_MS - MAX_HELD_MS;
    while ((underWay.get(network) ?? 0) >= MAX_LOOK_UPS_AT_ONCE) {
      if (performance.now() > giveUpAt) throw OVERLOADED;
      await holdRefusal();
      if (counted.has(name)) return lookUp(secretSha256, request.id);
    }
    let decision = await begin(network);
    if (!decision.admitted) {
      await holdRefusal();
      if (counted.has(name)) return lookUp(secretSha256, request.id);
      // Its response says what is so then.
      decision = await begin(network);
    }
    if (!decision.admitted) {
      setQuotaHeaders(reply, decision, UNKNOWN_KEYS_WINDOW_SECONDS);
      throw rateLimited(decision, 'Too many unknown keys came from this address');
    }
    // Before its look-up, or those that come with the same key meanwhile would count too.
    if (counted.size < MAX_COUNTED_KEYS) counted.set(name, performance.now());
    let isInVain = false;
    try {
      return await lookUp(secretSha256, request.id);
    } catch (problem) {
      isInVain = problem instanceof Problem && problem.code === 'integration_key_invalid';
      throw problem;
    } finally {
      count(network, -1);
      if (!isInVain) {
        counted.delete(name);
        await quota.refund(callerOf(network), decision.windows);
      }
    }
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
