import { createHash } from 'node:crypto';
import type { LeadSetAside } from './lead-change.ts';

/** The kinds of list that tokens paginate. The number is a token's first byte, and the version of its format. */
const KINDS = {
  leads: 1,
  sources: 2,
  studios: 3,
  export: 4,
  resent: 5,
  leadsOfContact: 6,
  apiKeys: 7,
  setAside: 8,
} as const;
type TokenKind = keyof typeof KINDS;

const CHECKSUM_BYTES = 16;

/**
 * Returns a token for a position in a list: base64url of the kind (1 byte), the position, and a checksum (16 bytes)
 * that also covers the scope. A token is not secret and grants nothing. The checksum makes a truncated, changed or
 * foreign token fail instead of leading to a wrong position.
 *
 * @param scope what the request that presents the token must be about, such as a studio's id
 */
function makeToken(kind: TokenKind, scope: string, position: Uint8Array): string {
  const head = Buffer.concat([Buffer.of(KINDS[kind]), position]);
  return Buffer.concat([head, checksum(scope, head)]).toString('base64url');
}

/** Returns the position in a token; undefined if it was not issued for this kind and scope. */
function positionOf(kind: TokenKind, scope: string, token: string): Buffer | undefined {
  const bytes = Buffer.from(token, 'base64url');
  const head = bytes.subarray(0, -CHECKSUM_BYTES);
  // Decoding ignores invalid characters; comparing the texts rejects them.
  if (head[0] !== KINDS[kind] || bytes.toString('base64url') !== token) return undefined;
  if (!checksum(scope, head).equals(bytes.subarray(-CHECKSUM_BYTES))) return undefined;
  return head.subarray(1);
}

const ID_BYTES = 16;
const DUE_BYTES = 8;

const idBytes = (id: string): Buffer => Buffer.from(id.replaceAll('-', ''), 'hex');

const idFromBytes = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

const checksum = (scope: string, head: Uint8Array): Buffer =>
  createHash('sha256').update(scope).update('\0').update(head).digest().subarray(0, CHECKSUM_BYTES);

/** The paginated lists of a studio. */
export type ListName = 'leads' | 'sources' | 'resent' | 'leadsOfContact' | 'apiKeys';

/** Returns the token of the page that follows an id. It is valid only for this list, of this studio or contact. */
export const pageTokenAfter = (list: ListName, scope: string, id: string): string =>
  makeToken(list, scope, idBytes(id));

/**
 * Returns the id that a page follows; undefined if the token was not issued for this list of this scope.
 *
 * @rule 4.3.cursor 4.3.own-cursor
 */
export function idBeforePage(list: ListName, scope: string, token: string): string | undefined {
  const position = positionOf(list, scope, token);
  return position?.length === ID_BYTES ? idFromBytes(position) : undefined;
}

export const studioTokenAfter = (studioId: string): string => makeToken('studios', '', Buffer.from(studioId));

/** Returns the id of the studio that a page follows; undefined if the token was not issued for this list. */
export const studioBeforePage = (token: string): string | undefined => positionOf('studios', '', token)?.toString();

/** The place of a lead in the list of what a consumer has set aside. */
type SetAsidePosition = Pick<LeadSetAside, 'due' | 'studioId' | 'leadId'>;

/** @param consumer its number */
export function setAsideTokenAfter(consumer: number, { due, studioId, leadId }: SetAsidePosition): string {
  const dueBytes = Buffer.alloc(DUE_BYTES);
  dueBytes.writeBigUInt64BE(BigInt(due.getTime()));
  return makeToken('setAside', `${consumer}`, Buffer.concat([dueBytes, idBytes(leadId), Buffer.from(studioId)]));
}

/** Returns the lead that a page follows; undefined if the token was not issued for this consumer. */
export function setAsideBeforePage(consumer: number, token: string): SetAsidePosition | undefined {
  const position = positionOf('setAside', `${consumer}`, token);
  if (position === undefined || position.length <= DUE_BYTES + ID_BYTES) return undefined;
  return {
    due: new Date(Number(position.readBigUInt64BE())),
    leadId: idFromBytes(position.subarray(DUE_BYTES, DUE_BYTES + ID_BYTES)),
    studioId: position.toString('utf8', DUE_BYTES + ID_BYTES),
  };
}

/** Yields the pages of a list, one after the other, as long as the consumer requests them. */
export async function* eachPage<Page extends { readonly nextPageToken: string }>(
  read: (pageToken: string) => Promise<Page>,
): AsyncGenerator<Page> {
  for (let page = await read(''); ; page = await read(page.nextPageToken)) {
    yield page;
    if (page.nextPageToken === '') return;
  }
}

/** The position of an export: all leads up to this one were sent. */
export interface ExportPosition {
  readonly studioId: string;
  readonly leadId: string;
}

/**
 * Returns the token with which an export resumes after a lead.
 *
 * @param scope the studio that is exported; empty: all studios
 */
export const resumeTokenAfter = (scope: string, { studioId, leadId }: ExportPosition): string =>
  makeToken('export', scope, Buffer.concat([idBytes(leadId), Buffer.from(studioId)]));

/** Returns the lead after which an export resumes; undefined if the token was not issued for this scope. */
export function exportPosition(scope: string, token: string): ExportPosition | undefined {
  const position = positionOf('export', scope, token);
  if (position === undefined || position.length <= ID_BYTES) return undefined;
  return { studioId: position.toString('utf8', ID_BYTES), leadId: idFromBytes(position.subarray(0, ID_BYTES)) };
}
