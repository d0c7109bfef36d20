import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * The secret of an API key: `lik_`, then base64url of 32 random bytes and their CRC-32 (4 bytes, big-endian). The prefix
 * lets scanners find leaked keys; the checksum lets the edge refuse a typing error without asking anybody.
 */
const PREFIX = 'lik_';
const RANDOM_BYTES = 32;
const SHAPE = /^lik_[A-Za-z0-9_-]{48}$/;

/** Makes a new secret. */
export const newKeySecret = (): string => newSecret(PREFIX);

/** Makes a new token of a caller of the core: `lic_`, then what a key's secret has behind its prefix. */
export const newCoreToken = (): string => newSecret('lic_');

function newSecret(prefix: string): string {
  const random = randomBytes(RANDOM_BYTES);
  return prefix + Buffer.concat([random, checksum(random)]).toString('base64url');
}

/** Whether a text could be a secret of ours at all. */
export function isKeySecret(text: string): boolean {
  if (!SHAPE.test(text)) return false;
  const bytes = Buffer.from(text.slice(PREFIX.length), 'base64url');
  return checksum(bytes.subarray(0, RANDOM_BYTES)).equals(bytes.subarray(RANDOM_BYTES));
}

/** Whatever has the shape of a secret, in any text, also behind an escape (`%20lik_…`); `isKeySecret` looks at the checksum. */
const IN_TEXT = /lik_[A-Za-z0-9_-]{48}(?![A-Za-z0-9_-])/g;

/** The secrets in a text, each once, and how much in it has the shape of one and another checksum. */
export function secretsIn(text: string): { readonly secrets: string[]; readonly misspelt: number } {
  const shaped = new Set(text.match(IN_TEXT));
  const secrets = [...shaped].filter(isKeySecret);
  return { secrets, misspelt: shaped.size - secrets.length };
}

/** SHA-256 of a secret, all that is kept or sent of it; 32 bytes. */
export function hashKeySecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

function checksum(bytes: Uint8Array): Buffer {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return sum;
}

/** A hash as a text, for what is looked up by it in memory. */
export const textOfHash = (secretSha256: Uint8Array): string => Buffer.from(secretSha256).toString('latin1');
