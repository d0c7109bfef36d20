import { randomFillSync } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { sha256 } from './sha256.ts';

/**
 * The secret of an API key: `lik_`, then base64url of 32 random bytes and their CRC-32 (4 bytes, big-endian). The prefix lets scanners find
 * leaked keys. The checksum lets the gateway refuse a mistyped key without a call.
 */
const PREFIX = 'lik_';
const RANDOM_BYTES = 32;
const BASE64URL = '[A-Za-z0-9_-]';
const ENCODED_LENGTH = 48;
const ENCODED = `${BASE64URL}{${ENCODED_LENGTH}}`;
const SECRET_LENGTH = PREFIX.length + ENCODED_LENGTH;

/** The prefix of a core caller's token. */
const TOKEN_PREFIX = 'lic_';

const SECRET = new RegExp(`^${PREFIX}${ENCODED}$`);
const SECRET_OR_TOKEN = new RegExp(`(?:${PREFIX}|${TOKEN_PREFIX})${ENCODED}`);
/** Also matches after an escape: `%20lik_…`. */
const EACH_SECRET = new RegExp(`${PREFIX}${ENCODED}(?!${BASE64URL})`, 'g');

export const newKeySecret = (): string => newSecret(PREFIX);

/** Creates a core caller's token, which differs from a key's secret only in its prefix. */
export const newCoreToken = (): string => newSecret(TOKEN_PREFIX);

function newSecret(prefix: string): string {
  const bytes = Buffer.alloc(RANDOM_BYTES + 4);
  randomFillSync(bytes, 0, RANDOM_BYTES).writeUInt32BE(crc32(bytes.subarray(0, RANDOM_BYTES)), RANDOM_BYTES);
  return prefix + bytes.toString('base64url');
}

/** Returns whether a text has the form and the checksum of a secret. */
export function isKeySecret(text: string): boolean {
  if (!SECRET.test(text)) return false;
  const bytes = Buffer.from(text.slice(PREFIX.length), 'base64url');
  return crc32(bytes.subarray(0, RANDOM_BYTES)) === bytes.readUInt32BE(RANDOM_BYTES);
}

const HINT_LENGTH = 4;

/** Returns the part of a secret that stays visible after the key was issued. */
export const toHint = (secret: string): string => secret.slice(-HINT_LENGTH);

export const isHint = (value: unknown): value is string => typeof value === 'string' && value.length === HINT_LENGTH;

/** Returns whether a text contains something that looks like a key's secret or a caller's token. */
export const hasSecretForm = (text: string): boolean => SECRET_OR_TOKEN.test(text);

/**
 * Finds the distinct secrets in a text, and counts texts that look like one but fail the checksum.
 *
 * @param pieces the text, cut anywhere, because it may be longer than a string can be
 */
export async function secretsIn(
  pieces: AsyncIterable<string> | Iterable<string>,
): Promise<{ readonly secrets: string[]; readonly misspelt: number }> {
  const found = new Set<string>();
  let text = '';
  for await (const piece of pieces) {
    // A secret that begins before this overlap was already seen, with the character behind it.
    text = text.slice(-SECRET_LENGTH) + piece;
    for (const { 0: each, index } of text.matchAll(EACH_SECRET)) if (index + each.length < text.length) found.add(each);
  }
  for (const each of text.slice(-SECRET_LENGTH).match(EACH_SECRET) ?? []) found.add(each);
  const secrets = [...found].filter(isKeySecret);
  return { secrets, misspelt: found.size - secrets.length };
}

/** Returns the SHA-256 of a secret, the only form in which it is stored or sent to the core; 32 bytes. */
export const hashKeySecret = (secret: string): Buffer => sha256(secret);

/** Returns a hash as a text, for use as a key of a Map. */
export const textOfHash = (secretSha256: Uint8Array): string => Buffer.from(secretSha256).toString('latin1');
