import { createHash } from 'node:crypto';

/**
 * A page token: base64url of a version (1 byte), the id of the last lead seen (16 bytes) and a checksum (16 bytes) that
 * also covers the studio. It is no secret and grants nothing: a token only moves within the leads of the studio that
 * presents it. The checksum is there so that a cut, changed or foreign one is refused and not followed to a wrong page.
 */
const VERSION = 1;
const BYTES = 33;

/** Makes the token of the page that follows a lead. */
export function pageTokenAfter(studioId: string, leadId: string): string {
  const head = Buffer.concat([Buffer.of(VERSION), Buffer.from(leadId.replaceAll('-', ''), 'hex')]);
  return Buffer.concat([head, checksum(studioId, head)]).toString('base64url');
}

/** The id of the lead that the page follows; undefined when the token is not one of ours for this studio. */
export function leadBeforePage(studioId: string, token: string): string | undefined {
  const bytes = Buffer.from(token, 'base64url');
  const head = bytes.subarray(0, 17);
  // Comparing texts also refuses what decoding forgives.
  if (bytes.length !== BYTES || bytes[0] !== VERSION || bytes.toString('base64url') !== token) return undefined;
  if (!checksum(studioId, head).equals(bytes.subarray(17))) return undefined;
  return head.toString('hex', 1).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function checksum(studioId: string, head: Uint8Array): Buffer {
  return createHash('sha256').update(studioId).update('\0').update(head).digest().subarray(0, 16);
}
