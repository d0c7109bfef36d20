import { createHash } from 'node:crypto';
import type { Lead } from './lead.ts';
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
  leadsByUpdate: 10,
  exportByUpdate: 11,
  endedStudio: 15,
  requests: 16,
  auditExport: 17,
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
function decodePosition(kind: TokenKind, scope: string, token: string): Buffer | undefined {
  const bytes = Buffer.from(token, 'base64url');
  const head = bytes.subarray(0, -CHECKSUM_BYTES);
  // Decoding ignores invalid characters; comparing the texts rejects them.
  if (head[0] !== KINDS[kind] || bytes.toString('base64url') !== token) return undefined;
  if (!checksum(scope, head).equals(bytes.subarray(-CHECKSUM_BYTES))) return undefined;
  return head.subarray(1);
}

const ID_BYTES = 16;
const TIME_BYTES = 8;

const WITH_TIME: readonly TokenKind[] = ['leadsByUpdate', 'exportByUpdate', 'setAside'];

const idBytes = (id: string): Buffer => Buffer.from(id.replaceAll('-', ''), 'hex');

const idFromBytes = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

const checksum = (scope: string, head: Uint8Array): Buffer =>
  createHash('sha256').update(scope).update('\0').update(head).digest().subarray(0, CHECKSUM_BYTES);

/** A position in a list that is in the order of `updatedAt`: the id of a lead, a space, and its time in milliseconds. */
export const updatePosition = ({ id, updatedAt }: Pick<Lead, 'id' | 'updatedAt'>): string =>
  `${id} ${updatedAt.getTime()}`;

export function idAndTime(position: string): readonly [id: string, ms: number] {
  const [id = '', ms] = position.split(' ');
  return [id, Number(ms)];
}

const positionBytes = (position: string): Uint8Array => {
  const [id, ms] = idAndTime(position);
  if (Number.isNaN(ms)) return idBytes(id);
  const time = Buffer.alloc(TIME_BYTES);
  time.writeBigInt64BE(BigInt(ms));
  return Buffer.concat([idBytes(id), time]);
};

/** A position, and what follows it in a token. */
interface PositionIn {
  readonly position: string;
  readonly rest: Buffer;
}

/** Undefined: the token was not issued for this kind and scope, or has no position of the kind. */
function positionIn(kind: TokenKind, scope: string, token: string): PositionIn | undefined {
  const bytes = decodePosition(kind, scope, token);
  const hasTime = WITH_TIME.includes(kind);
  const length = ID_BYTES + (hasTime ? TIME_BYTES : 0);
  if (bytes === undefined || bytes.length < length) return undefined;
  const [id, rest] = [idFromBytes(bytes.subarray(0, ID_BYTES)), bytes.subarray(length)];
  if (!hasTime) return { position: id, rest };
  const updatedAt = new Date(Number(bytes.readBigInt64BE(ID_BYTES)));
  return Number.isNaN(updatedAt.getTime()) ? undefined : { position: updatePosition({ id, updatedAt }), rest };
}

/** The place of a lead in a list of several studios. */
export interface LeadPlace {
  readonly studioId: string;
  /** Of the lead: its id, or updatePosition. */
  readonly position: string;
}

const placeToken = (kind: TokenKind, scope: string, { studioId, position }: LeadPlace): string =>
  makeToken(kind, scope, Buffer.concat([positionBytes(position), Buffer.from(studioId)]));

function placeIn(kind: TokenKind, scope: string, token: string): LeadPlace | undefined {
  const found = positionIn(kind, scope, token);
  return found && found.rest.length > 0 ? { studioId: found.rest.toString(), position: found.position } : undefined;
}

export type ListName =
  | 'leads'
  | 'leadsByUpdate'
  | 'sources'
  | 'resent'
  | 'leadsOfContact'
  | 'apiKeys'
  | 'endedStudio'
  | 'requests';

/** Returns the token of the page that follows an id, or updatePosition. It is valid only for this list, of this scope. */
export const pageTokenAfter = (list: ListName, scope: string, position: string): string =>
  makeToken(list, scope, positionBytes(position));

/**
 * Returns the position that a page follows; undefined if the token was not issued for this list of this scope.
 *
 * @rule 4.3.cursor 4.3.own-cursor
 */
export function idBeforePage(list: ListName, scope: string, token: string): string | undefined {
  const found = positionIn(list, scope, token);
  return found?.rest.length === 0 ? found.position : undefined;
}

export const studioTokenAfter = (studioId: string): string => makeToken('studios', '', Buffer.from(studioId));

/** Returns the id of the studio that a page follows; undefined if the token was not issued for this list. */
export const studioBeforePage = (token: string): string | undefined => decodePosition('studios', '', token)?.toString();

/** The place of a lead in the list of what a consumer has set aside. */
type SetAsidePosition = Pick<LeadSetAside, 'due' | 'studioId' | 'leadId'>;

/** @param consumer its number */
export const setAsideTokenAfter = (consumer: number, { due, studioId, leadId: id }: SetAsidePosition): string =>
  placeToken('setAside', `${consumer}`, { studioId, position: updatePosition({ id, updatedAt: due }) });

/** Returns the lead that a page follows; undefined if the token was not issued for this consumer. */
export function setAsideBeforePage(consumer: number, token: string): SetAsidePosition | undefined {
  const place = placeIn('setAside', `${consumer}`, token);
  if (!place) return undefined;
  const [leadId, ms] = idAndTime(place.position);
  return { due: new Date(ms), studioId: place.studioId, leadId };
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

/** How far an export of audit events has come. */
export interface AuditPosition {
  readonly start: Date;
  readonly end: Date;
  /** The store's. */
  readonly after: string;
}

export const auditTokenAfter = ({ start, end, after }: AuditPosition): string =>
  makeToken('auditExport', '', Buffer.from(`${start.getTime()} ${end.getTime()} ${after}`));

/** Returns where an export of audit events resumes; undefined if the token was not issued for one. */
export function auditPosition(token: string): AuditPosition | undefined {
  const [, start, end, after] =
    /^(\d+) (\d+) (.*)$/.exec(decodePosition('auditExport', '', token)?.toString() ?? '') ?? [];
  return after === undefined ? undefined : { start: new Date(Number(start)), end: new Date(Number(end)), after };
}

/**
 * Returns the token with which an export resumes after a lead.
 *
 * @param scope the studio that is exported, and the filter; the studio is empty for all
 */
export const resumeTokenAfter = (scope: string, place: LeadPlace): string =>
  placeToken(place.position.includes(' ') ? 'exportByUpdate' : 'export', scope, place);

/** Returns where an export resumes; undefined if the token was not issued for this scope. */
export const exportPosition = (scope: string, token: string, isByUpdate: boolean): LeadPlace | undefined =>
  placeIn(isByUpdate ? 'exportByUpdate' : 'export', scope, token);
