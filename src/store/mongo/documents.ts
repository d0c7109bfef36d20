import { Binary, UUID } from 'mongodb';
import type { ApiKey } from '../../domain/api-key.ts';
import type { Consumer } from '../../domain/consumer.ts';
import type { Delivery } from '../../domain/lead-change.ts';
import type { LoggedRequest } from '../../domain/request-log.ts';
import type { LeadSource, Member, MemberRole, SourceSettings, Studio } from '../../domain/studio.ts';
import { type AnyField, type Checked, checked, type RecordType, type Unchecked, uuidOfHex } from '../checked.ts';
import { CONTACT_RULE_VERSION } from '../earlier-release.ts';
import { API_KEY, LEAD_SOURCE, MEMBER, STUDIO } from '../records.ts';
import type { Changeable } from './history.ts';
import type { DeliveryKey, LeadKey } from './queries.ts';

/** All named consumers, which change together, because their number is limited. Its history is the deployment's. */
export interface ConsumersDocument extends Changeable {
  readonly _id: 'consumers';
  /** Grows with each change; a change requires the version that it read. */
  readonly version: number;
  /** The number of the next consumer. */
  readonly next: number;
  readonly list: readonly Consumer[];
  /** As in DatabaseEpoch; absent: the database was never restored. */
  readonly epoch?: number;
  readonly restoredTo?: Date;
}

/** The release of a database, in the collection of the feed. */
export interface SchemaDocument {
  readonly _id: 'schema';
  readonly version: number;
}

/** The retention time, beside the consumers. */
export interface RetentionTimeDocument {
  readonly _id: 'retention';
  readonly version: number;
  readonly time: Date;
}

/** The state before the first consumer. */
export const NO_CONSUMERS = { version: 0, next: 1, list: [] } as const;

/** The changes of a lead that a consumer has not handled. Includes the studio, so that the collection can be sharded by it. */
export interface DeliveryDocument extends Delivery {
  readonly _id: DeliveryKey;
  readonly consumer: number;
  readonly studioId: string;
  /** The time of its first change while it waits; otherwise see DEFERRED. */
  readonly due: Date;
  /** How often and why it was set aside at this revision; absent: it was not. */
  readonly attempts?: number;
  readonly reason?: string;
}

/** A website's request. Includes the studio, so that the collection can be sharded by it. */
export interface RequestDocument extends Omit<LoggedRequest, 'id'> {
  readonly _id: LeadKey;
}

/** A key; `slot` is one of KEY_SLOTS, or its own id once it is revoked, or has expired and another key took its slot. */
export interface ApiKeyDocument extends Omit<ApiKey, 'id' | 'secretSha256' | 'quotaLimit'>, Changeable {
  readonly _id: UUID;
  readonly secretSha256: Binary;
  readonly slot: string;
  readonly quotaLimit?: number | null;
}

/** A studio with its members and sources by id, so that each can be written separately. */
export interface StudioDocument
  extends Changeable,
    Pick<Studio, 'status' | 'regionCode'>,
    Partial<Omit<Studio, 'id' | 'status' | 'regionCode'>> {
  readonly _id: string;
  readonly claimVersion?: number;
  readonly members: Readonly<Record<string, MemberRole>>;
  readonly sources: Readonly<Record<string, SourceSettings>>;
}

/** Release 1.2 reads these fields of each studio, and does not start without them. */
export const FIELDS_OF_1_2 = { claimVersion: CONTACT_RULE_VERSION, renewal: null } as const;

/** The fields of a studio's record; the rest of the document may be large. */
export const STUDIO_FIELDS = Object.fromEntries(Object.keys(STUDIO.fields).map((name) => [name, 1] as const));

export const AFTER_ALL_STUDIOS = '{';
export const AFTER_ALL_SLOTS = 'g';

export const apiKeyDocument = (key: ApiKey, slot: string): ApiKeyDocument =>
  ({ ...storedFields(API_KEY, key), slot }) as ApiKeyDocument;

export const readApiKey = (document: ApiKeyDocument): Checked<ApiKey> => checked(API_KEY, fieldsIn(API_KEY, document));

/** Returns the unchecked record of a document or a part of one. */
export function fieldsIn<Record>({ fields }: RecordType<Record>, document: object): Unchecked<Record> {
  const record: { [name: string]: unknown } = {};
  for (const name in fields) {
    const { kind, absent, readPart } = fields[name] as AnyField;
    const stored = (document as { readonly [name: string]: unknown })[name === 'id' ? '_id' : name];
    const value = kind === 'uuid' ? uuidText(stored) : kind === 'bytes' ? bytesIn(stored) : stored;
    record[name] = stored === undefined ? absent : readPart ? readPart(value) : value;
  }
  return record as Unchecked<Record>;
}

const bytesIn = (value: unknown) => (value instanceof Binary ? Uint8Array.from(value.value()) : undefined);

export function storedFields<Record extends object>(
  { fields }: RecordType<Record>,
  record: Partial<Record>,
): { readonly [field: string]: unknown } {
  const stored = Object.entries<unknown>(record).map(([name, value]) => {
    const { kind } = fields[name as keyof Record];
    const bson =
      kind === 'uuid' ? new UUID(value as string) : kind === 'bytes' ? new Binary(value as Uint8Array) : value;
    return [name === 'id' ? '_id' : name, bson];
  });
  return Object.fromEntries(stored);
}

export function readSource({ _id: studioId, sources }: StudioDocument, id: string): Checked<LeadSource> | null {
  const source = findEntry(sources, id);
  return source === undefined
    ? null
    : checked(LEAD_SOURCE, { studioId, id, name: source?.name, enabled: source?.enabled });
}

export function readMember({ _id: studioId, members }: StudioDocument, id: string): Checked<Member> | null {
  const role = findEntry(members, id);
  return role === undefined ? null : checked(MEMBER, { studioId, id, role });
}

/** Returns an own property. The CRM may assign an id such as `constructor`, which every object inherits. */
export const findEntry = <Entry>(entries: Readonly<Record<string, Entry>>, id: string): Entry | undefined =>
  Object.hasOwn(Object(entries), id) ? entries[id] : undefined;

// The driver's own text is joined from five parts, which takes a tenth of a page's time.
export const uuidText = (value: unknown): string | undefined =>
  value instanceof UUID ? uuidOfHex(value.toHexString(false)) : undefined;
