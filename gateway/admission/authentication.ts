import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { CORE_CALL_MS } from '../../common/deadlines.ts';
import { headerValues } from '../../common/header-values.ts';
import { hashKeySecret, isKeySecret, textOfHash, toHint } from '../../common/rules/key-secret.ts';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { toClient } from '../client-address.ts';
import type { FoundKey } from '../key-check.ts';
import { OVERLOADED, Problem } from '../problems.ts';
import type { Sender } from '../request.ts';
import { consumePatiently, rateLimited } from './count-quota.ts';
import type { KeyLookUps } from './key-look-ups.ts';
import { createMemoryQuota } from './quota/memory-quota.ts';

/**
 * Identifies the caller. A replaced or revoked key stops working immediately, because the core validates the key of each request. An
 * unknown key is validated before anything else. A key in the cache is validated together with the operation, which saves a round trip.
 *
 * @returns a function that throws, or rejects with, the Problem for the caller
 * @rule 3.2.replaced 5.2 5.7 5.8
 */
export function authenticator(lookUps: KeyLookUps, cache: ApiKeyCache) {
  const findUnknown = unknownKeys(lookUps);
  return (request: FastifyRequest): FoundKey | Promise<FoundKey> => {
    const secret = readBearerSecret(request);
    if (secret === undefined) throw new Problem('integration_key_invalid');
    const presented = { secretSha256: hashKeySecret(secret), secretHint: toHint(secret), requestId: request.id };
    const name = textOfHash(presented.secretSha256);
    const cached = cache.get(name);
    if (cached) return { kind: 'remembered', key: { ...presented, studioId: cached.studioId, caller: cached } };
    // Malformed keys are refused here, so guesses cost the core nothing.
    if (!isKeySecret(secret)) throw new Problem('integration_key_invalid');
    // A key whose entry expired is not a guess: it was valid.
    const found = cache.has(name) ? lookUps.find(presented) : findUnknown(presented, request);
    return found.then(({ caller, ...event }) => {
      cache.set(name, caller);
      return { ...event, key: { ...presented, studioId: caller.studioId, caller } };
    });
  };
}

// @rule 5.1 5.5 5.header
function readBearerSecret(request: FastifyRequest): string | undefined {
  // Node silently uses the first of several headers.
  const [authorization, ...more] = headerValues(request.raw, 'authorization');
  if (authorization === undefined || more.length > 0) return undefined;
  // A much longer text than a secret would take long to hash.
  return /^Bearer +(\S{1,99})$/i.exec(authorization)?.[1];
}

/** The maximum number of entries; the oldest is evicted first. */
export const MAX_CACHED_KEYS = 50_000;

/**
 * Caches what rarely or never changes about an API key: id, studio, scopes and quotas. An entry expires after a fixed time, because quotas
 * can change. The entry does not say whether the key is still valid, which can change at any moment.
 */
export class ApiKeyCache<Value = AuthenticateApiKeyResponse> {
  readonly #entries = new Map<string, { readonly value: Value; readonly expiresAtMs: number }>();
  readonly #ttlMs: number;
  readonly #clock: () => number;

  /** @param clock milliseconds since any moment; must never go back */
  constructor(ttlMs: number, clock = () => performance.now()) {
    this.#ttlMs = ttlMs;
    this.#clock = clock;
  }

  get(name: string): Value | undefined {
    const entry = this.#entries.get(name);
    return entry && this.#clock() < entry.expiresAtMs ? entry.value : undefined;
  }

  /** Returns whether there is an entry, even an expired one. */
  has(name: string): boolean {
    return this.#entries.has(name);
  }

  set(name: string, value: Value): void {
    this.#entries.set(name, { value, expiresAtMs: this.#clock() + this.#ttlMs });
    if (this.#entries.size <= MAX_CACHED_KEYS) return;
    const [oldest = ''] = this.#entries.keys();
    this.#entries.delete(oldest);
  }

  delete(name: string): void {
    this.#entries.delete(name);
  }
}

/**
 * The maximum number of different unknown keys per address and window that the core looks up. Retries with one outdated key count once, so
 * they do not affect others behind the same address. A key's checksum is public, so a well-formed guess is as cheap as a request. The
 * number is less than half of the requests that may wait for the core, so one address cannot have other addresses' requests shed.
 */
export const MAX_UNKNOWN_KEYS = 500;
export const UNKNOWN_KEYS_WINDOW_SECONDS = 10;

/**
 * The number of unknown keys per address that are looked up at once; further ones wait. It is less than MAX_UNKNOWN_KEYS, so valid keys
 * that arrive together after a start do not use up the limit.
 */
const MAX_LOOK_UPS_AT_ONCE = MAX_UNKNOWN_KEYS / 2;

const LIMITS = { key: MAX_UNKNOWN_KEYS, studio: undefined };

/** Returns the quota caller that stands for a client's network instead of a key. */
const toQuotaCaller = (request: FastifyRequest) => ({ apiKeyId: toClient(request.clientAddress), studioId: '' });

/**
 * How long, on average, to hold an uncounted refusal of an address that has too many. A flood on hundreds of connections becomes a trickle,
 * and leaves the processor to other requests.
 */
export const HELD_REFUSAL_MS = 1000;

const MAX_HELD_MS = 1.5 * HELD_REFUSAL_MS;

/** Waits for HELD_REFUSAL_MS on average, with jitter. */
const holdRefusal = (): Promise<void> => sleep(MAX_HELD_MS - HELD_REFUSAL_MS * Math.random());

/** Returns a function that delays an uncounted refusal if its address has too many of them. */
export function uncountedRefusals(): (request: FastifyRequest) => Promise<void> {
  const quota = createMemoryQuota(UNKNOWN_KEYS_WINDOW_SECONDS);
  return async (request) => {
    if (!(await quota.consume(toQuotaCaller(request), LIMITS)).admitted) await holdRefusal();
  };
}

/** Returns a function that looks up a key that is new to this gateway, or rejects with the Problem. */
function unknownKeys(lookUps: KeyLookUps) {
  const quota = createMemoryQuota(UNKNOWN_KEYS_WINDOW_SECONDS);
  /** Keys that the current window has counted, by network and hash. */
  const counted = new ApiKeyCache<true>(UNKNOWN_KEYS_WINDOW_SECONDS * 1000);
  /** Look-ups in flight, by network. */
  const inFlight = new Map<string, number>();
  return async (sender: Sender, request: FastifyRequest) => {
    const caller = toQuotaCaller(request);
    const { apiKeyId: network } = caller;
    const name = `${network} ${textOfHash(sender.secretSha256)}`;
    const giveUpAt = performance.now() + CORE_CALL_MS - MAX_HELD_MS;
    for (let isHeld = false; counted.get(name) === undefined; await holdRefusal()) {
      const count = inFlight.get(network) ?? 0;
      if (count >= MAX_LOOK_UPS_AT_ONCE) {
        if (performance.now() > giveUpAt) throw OVERLOADED;
        continue;
      }
      inFlight.set(network, count + 1);
      try {
        const decision = await consumePatiently(quota, caller, LIMITS);
        if (decision.admitted) {
          // Set before the look-up, so that concurrent requests with the same key do not count.
          counted.set(name, true);
          const found = lookUps.find(sender);
          const { code } = await found.catch((problem) => problem);
          if (code !== 'integration_key_invalid') {
            counted.delete(name);
            await quota.refund(caller, decision.windows);
          }
          return await found;
        }
        // Refuses only after a hold, so that the response describes the state after the hold.
        if (isHeld)
          throw rateLimited(decision, UNKNOWN_KEYS_WINDOW_SECONDS, 'Too many unknown keys came from this address');
        isHeld = true;
      } finally {
        const rest = (inFlight.get(network) ?? 0) - 1;
        if (rest > 0) inFlight.set(network, rest);
        else inFlight.delete(network);
      }
    }
    return lookUps.find(sender);
  };
}
