import { createHash } from 'node:crypto';

/** What tokens lead through. The number is a token's first byte, and the version of its form. */
const KINDS = { leads: 1, sources: 2, studios: 3, export: 4, resent: 5, leadsOfContact: 6 } as const;
export type TokenKind = keyof typeof KINDS;

const CHECKSUM_BYTES = 16;

/**
 * A token that tells where a caller is: base64url of what it leads through (1 byte), the place, and a checksum (16 bytes) that
 * also covers whose it is. It is no secret and grants nothing. The checksum is there so that a cut, changed or foreign one is
 * refused and not followed to a wrong place.
 *
 * @param scope whose it is: what whoever presents it must ask for as well
 */
export function makeToken(kind: TokenKind, scope: string, place: Uint8Array): string {
  const head = Buffer.concat([Buffer.of(KINDS[kind]), place]);
  return Buffer.concat([head, checksum(scope, head)]).toString('base64url');
}

/** The place that a token tells; undefined when it is not one of ours for this kind and scope. */
export function placeOf(kind: TokenKind, scope: string, token: string): Buffer | undefined {
  const bytes = Buffer.from(token, 'base64url');
  const head = bytes.subarray(0, -CHECKSUM_BYTES);
  // Comparing texts also refuses what decoding forgives.
  if (head[0] !== KINDS[kind] || bytes.toString('base64url') !== token) return undefined;
  if (!checksum(scope, head).equals(bytes.subarray(-CHECKSUM_BYTES))) return undefined;
  return head.subarray(1);
}

/** An id, a UUID, as 16 bytes. */
export const idBytes = (id: string): Buffer => Buffer.from(id.replaceAll('-', ''), 'hex');

/** The same as text. */
export const idFromBytes = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

function checksum(scope: string, head: Uint8Array): Buffer {
  return createHash('sha256').update(scope).update('\0').update(head).digest().subarray(0, CHECKSUM_BYTES);
}
