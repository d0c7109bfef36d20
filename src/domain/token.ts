import { createHash } from 'node:crypto';

/** The kinds of list that tokens paginate. The number is a token's first byte, and the version of its format. */
const KINDS = { leads: 1, sources: 2, studios: 3, export: 4, resent: 5, leadsOfContact: 6, apiKeys: 7 } as const;
export type TokenKind = keyof typeof KINDS;

const CHECKSUM_BYTES = 16;

/**
 * Returns a token for a position in a list: base64url of the kind (1 byte), the position, and a checksum (16 bytes)
 * that also covers the scope. A token is not secret and grants nothing. The checksum makes a truncated, changed or
 * foreign token fail instead of leading to a wrong position.
 *
 * @param scope what the request that presents the token must be about, such as a studio's id
 */
export function makeToken(kind: TokenKind, scope: string, position: Uint8Array): string {
  const head = Buffer.concat([Buffer.of(KINDS[kind]), position]);
  return Buffer.concat([head, checksum(scope, head)]).toString('base64url');
}

/** Returns the position in a token; undefined if it was not issued for this kind and scope. */
export function positionOf(kind: TokenKind, scope: string, token: string): Buffer | undefined {
  const bytes = Buffer.from(token, 'base64url');
  const head = bytes.subarray(0, -CHECKSUM_BYTES);
  // Decoding ignores invalid characters; comparing the texts rejects them.
  if (head[0] !== KINDS[kind] || bytes.toString('base64url') !== token) return undefined;
  if (!checksum(scope, head).equals(bytes.subarray(-CHECKSUM_BYTES))) return undefined;
  return head.subarray(1);
}

/** The length of a UUID. */
export const ID_BYTES = 16;

/** Returns the bytes of a UUID. */
export const idBytes = (id: string): Buffer => Buffer.from(id.replaceAll('-', ''), 'hex');

/** Returns the UUID with these bytes. */
export const idFromBytes = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

function checksum(scope: string, head: Uint8Array): Buffer {
  return createHash('sha256').update(scope).update('\0').update(head).digest().subarray(0, CHECKSUM_BYTES);
}
