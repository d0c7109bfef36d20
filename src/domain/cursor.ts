import { createHash } from 'node:crypto';

/**
 * A page token: base64url of what it is a list of (1 byte, which is also the version), the id of the last one seen (16 bytes)
 * and a checksum (16 bytes) that also covers the studio. It is no secret and grants nothing: a token only moves within the
 * list of the studio that presents it. The checksum is there so that a cut, changed or foreign one is refused and not followed
 * to a wrong page.
 */
const VERSIONS = { leads: 1, sources: 2, leadsOfContact: 3 } as const;
const BYTES = 33;

/** What a studio has lists of. */
type ListName = keyof typeof VERSIONS;

/** Makes the token of the page that follows an id. */
export function pageTokenAfter(list: ListName, studioId: string, id: string): string {
  const head = Buffer.concat([Buffer.of(VERSIONS[list]), Buffer.from(id.replaceAll('-', ''), 'hex')]);
  return Buffer.concat([head, checksum(studioId, head)]).toString('base64url');
}

/**
 * The id that the page follows; undefined when the token is not one of ours for this list of this studio.
 *
 * @rule 4.3.cursor 4.3.own-cursor
 */
export function idBeforePage(list: ListName, studioId: string, token: string): string | undefined {
  const bytes = Buffer.from(token, 'base64url');
  const head = bytes.subarray(0, 17);
  // Comparing texts also refuses what decoding forgives.
  if (bytes.length !== BYTES || bytes[0] !== VERSIONS[list] || bytes.toString('base64url') !== token) return undefined;
  if (!checksum(studioId, head).equals(bytes.subarray(17))) return undefined;
  return head.toString('hex', 1).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function checksum(studioId: string, head: Uint8Array): Buffer {
  return createHash('sha256').update(studioId).update('\0').update(head).digest().subarray(0, 16);
}
