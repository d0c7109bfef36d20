import { sha256 } from '../../common/rules/sha256.ts';
import type { SetAsidePosition } from './lead-change.ts';

/** The kinds of list that have tokens. The number is the first byte of a token. A new format gets a new number. */
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
 * that also covers the scope. A token is not secret and grants nothing. The checksum rejects a truncated, changed or
 * foreign token, which could otherwise lead to a wrong position.
 *
 * @param scope the subject that the presenting request must have, such as a studio's id
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
  sha256(Buffer.concat([Buffer.from(`${scope}\0`), head])).subarray(0, CHECKSUM_BYTES);

interface UpdatedLead {
  readonly id: string;
  readonly updatedAt: Date;
}

/** Returns a position in a list ordered by `updatedAt`: a lead's id, a space, and its time in milliseconds. */
export const updatePosition = ({ id, updatedAt }: UpdatedLead): string => `${id} ${updatedAt.getTime()}`;

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

/** The position of a lead in a list of one or several studios. */
export interface StudioPosition {
  /** Empty in a list of one studio. */
  readonly studioId: string;
  /** The id of the lead, or the result of updatePosition. */
  readonly position: string;
}

/** Returns the position in a token; undefined if it was not issued for this kind and scope, or is malformed. */
function positionIn(kind: TokenKind, scope: string, token: string): StudioPosition | undefined {
  const bytes = decodePosition(kind, scope, token);
  const hasTime = WITH_TIME.includes(kind);
  const length = ID_BYTES + (hasTime ? TIME_BYTES : 0);
  if (bytes === undefined || bytes.length < length) return undefined;
  const [id, studioId] = [idFromBytes(bytes.subarray(0, ID_BYTES)), bytes.toString('utf8', length)];
  if (!hasTime) return { position: id, studioId };
  const updatedAt = new Date(Number(bytes.readBigInt64BE(ID_BYTES)));
  return Number.isNaN(updatedAt.getTime()) ? undefined : { position: updatePosition({ id, updatedAt }), studioId };
}

const positionToken = (kind: TokenKind, scope: string, { studioId, position }: StudioPosition): string =>
  makeToken(kind, scope, Buffer.concat([positionBytes(position), Buffer.from(studioId)]));

function studioPositionIn(kind: TokenKind, scope: string, token: string): StudioPosition | undefined {
  const found = positionIn(kind, scope, token);
  return found?.studioId ? found : undefined;
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

/** Returns the token of the page after a position: an id, or the result of updatePosition. Valid only for this list and scope. */
export const pageTokenAfter = (list: ListName, scope: string, position: string): string =>
  makeToken(list, scope, positionBytes(position));

/**
 * Returns the position before a page; undefined if the token was not issued for this list and scope.
 *
 * @rule 4.3.cursor 4.3.own-cursor
 */
export function idBeforePage(list: ListName, scope: string, token: string): string | undefined {
  const found = positionIn(list, scope, token);
  return found?.studioId === '' ? found.position : undefined;
}

export const studioTokenAfter = (studioId: string): string => makeToken('studios', '', Buffer.from(studioId));

/** Returns the id of the studio before a page; undefined if the token was not issued for this list. */
export const studioBeforePage = (token: string): string | undefined => decodePosition('studios', '', token)?.toString();

export const setAsideTokenAfter = (consumer: number, { due, studioId, leadId: id }: SetAsidePosition): string =>
  positionToken('setAside', `${consumer}`, { studioId, position: updatePosition({ id, updatedAt: due }) });

/** Returns the lead before a page; undefined if the token was not issued for this consumer. */
export function setAsideBeforePage(consumer: number, token: string): SetAsidePosition | undefined {
  const found = studioPositionIn('setAside', `${consumer}`, token);
  if (!found) return undefined;
  const [leadId, ms] = idAndTime(found.position);
  return { due: new Date(ms), studioId: found.studioId, leadId };
}

/** Yields the pages of a list. Reads each page only when it is requested. */
export async function* eachPage<Page extends { readonly nextPageToken: string }>(
  read: (pageToken: string) => Promise<Page>,
): AsyncGenerator<Page> {
  for (let page = await read(''); ; page = await read(page.nextPageToken)) {
    yield page;
    if (page.nextPageToken === '') return;
  }
}

/** The progress of an export of audit events. */
export interface AuditPosition {
  readonly start: Date;
  readonly end: Date;
  /** The position in walkAuditEvents. */
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
 * @param scope the exported studio (empty: all), and the filter
 */
export const resumeTokenAfter = (scope: string, last: StudioPosition): string =>
  positionToken(last.position.includes(' ') ? 'exportByUpdate' : 'export', scope, last);

/** Returns where an export resumes; undefined if the token was not issued for this scope. */
export const exportPosition = (scope: string, token: string, isByUpdate: boolean): StudioPosition | undefined =>
  studioPositionIn(isByUpdate ? 'exportByUpdate' : 'export', scope, token);
