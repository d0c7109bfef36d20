import { hash, randomFillSync } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * The secret of an API key: `lik_`, then base64url of 32 random bytes and their CRC-32 (4 bytes, big-endian). The
 * prefix lets scanners find leaked keys; by the checksum the gateway refuses a mistyped key without a call.
 */
const PREFIX = 'lik_';
const RANDOM_BYTES = 32;
const SHAPE = /^lik_[A-Za-z0-9_-]{48}$/;

export const newKeySecret = (): string => newSecret(PREFIX);

/** Creates a token for a caller of the core: like a key's secret, but with the prefix `lic_`. */
export const newCoreToken = (): string => newSecret('lic_');

function newSecret(prefix: string): string {
  const bytes = Buffer.alloc(RANDOM_BYTES + 4);
  randomFillSync(bytes, 0, RANDOM_BYTES).writeUInt32BE(crc32(bytes.subarray(0, RANDOM_BYTES)), RANDOM_BYTES);
  return prefix + bytes.toString('base64url');
}

/** Whether a text has the form and the checksum of a secret. */
export function isKeySecret(text: string): boolean {
  if (!SHAPE.test(text)) return false;
  const bytes = Buffer.from(text.slice(PREFIX.length), 'base64url');
  return crc32(bytes.subarray(0, RANDOM_BYTES)) === bytes.readUInt32BE(RANDOM_BYTES);
}

const HINT_LENGTH = 4;

/** Returns the part of a secret that stays visible after the key was issued. */
export const hintOf = (secret: string): string => secret.slice(-HINT_LENGTH);

export const isHint = (value: unknown): value is string => typeof value === 'string' && value.length === HINT_LENGTH;

/** Whether a text has the form of the secret of a key, or of a caller's token, anywhere. */
export const hasSecretForm = (text: string): boolean => /li[kc]_[A-Za-z0-9_-]{48}/.test(text);

/** Finds the form of a secret in any text, also after an escape (`%20lik_…`); `isKeySecret` checks the checksum. */
const IN_TEXT = /lik_[A-Za-z0-9_-]{48}(?![A-Za-z0-9_-])/g;

/** The secrets in a text, each once, and the number of texts that look like one but fail the checksum. */
export function secretsIn(text: string): { readonly secrets: string[]; readonly misspelt: number } {
  const shaped = new Set(text.match(IN_TEXT));
  const secrets = [...shaped].filter(isKeySecret);
  return { secrets, misspelt: shaped.size - secrets.length };
}

/** The SHA-256 of a secret, the only form in which it is stored or sent to the core; 32 bytes. */
export function hashKeySecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** A hash as a text, for use as a key of a Map. */
export const textOfHash = (secretSha256: Uint8Array): string => Buffer.from(secretSha256).toString('latin1');
