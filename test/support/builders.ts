import { randomBytes } from 'node:crypto';
import { DAY_MS } from '../../common/units.ts';
import type { ApiKey } from '../../src/domain/api-key.ts';
import type { AuditContext } from '../../src/domain/audit.ts';
import type { NewConsumer } from '../../src/domain/consumer.ts';
import { type KeyedContact, toContactKeys } from '../../src/domain/contact.ts';
import { computeFingerprint } from '../../src/domain/fingerprint.ts';
import type { Lead, LeadKeys } from '../../src/domain/lead.ts';
import { readTexts } from '../../src/domain/lead-data.ts';
import { newId, timeOfId } from '../../src/domain/new-id.ts';
import type { LoggedRequest } from '../../src/domain/request-log.ts';
import type { LeadSource, Member, Studio } from '../../src/domain/studio.ts';

/** The current time of tests that can choose it. */
export const NOW = new Date('2026-03-14T15:09:26.535Z');

/** The default audit context: who acts, and when. */
export const BY: AuditContext = { memberId: 'member-1', now: NOW };

/** Adds milliseconds to a time. */
export const plus = (moment: Date, ms: number): Date => new Date(moment.getTime() + ms);

export { DAY_MS };

/** The default studio. */
export const STUDIO_ID = 'studio-1';

/** Returns a list of `count` items. */
export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

export function aStudio(overrides: Partial<Studio> = {}): Studio {
  return {
    id: STUDIO_ID,
    status: 'active',
    regionCode: null,
    quotaLimit: null,
    keepEnquiries: true,
    isTest: false,
    retention: null,
    formerRegions: [],
    ...overrides,
  };
}

export function aMember(overrides: Partial<Member> = {}): Member {
  return { studioId: STUDIO_ID, id: 'member-1', role: 'owner', ...overrides };
}

export function aLeadSource(overrides: Partial<LeadSource> = {}): LeadSource {
  return { studioId: STUDIO_ID, id: newId(), name: 'Spring campaign', enabled: true, ...overrides };
}

export function aConsumer(overrides: Partial<NewConsumer> = {}): NewConsumer {
  return { name: 'relay', studioIds: null, includesTests: false, start: 'now', createdAt: NOW, ...overrides };
}

/** Returns a new lead, by default with a contact that no other lead has. */
export function aLead(overrides: Partial<Lead> = {}): Lead {
  const id = overrides.id ?? newId();
  const createdAt = overrides.createdAt ?? timeOfId(id);
  return {
    id,
    studioId: STUDIO_ID,
    ...readTexts({ displayName: 'Ada Lovelace' }),
    contact: { type: 'email', value: `${id}@example.org` },
    stage: 'new',
    createdAt,
    updatedAt: createdAt,
    ...overrides,
  };
}

/** Returns the keys and the contact of a lead that is created or reopened, by default with a new idempotency key. */
export function keysFor(lead: Lead, overrides: Partial<LeadKeys> = {}): LeadKeys & KeyedContact {
  return {
    contact: lead.contact,
    idempotencyKey: newId(),
    fingerprint: computeFingerprint(lead),
    ...toContactKeys(lead.contact, aStudio()),
    ...overrides,
  };
}

/** Returns a readable contact key of the length of real ones. */
export const aContactKey = (name: string): string => name.padEnd(43, 'A');

/** Returns an API key that expires a day after NOW, by default with a unique secret. */
export function anApiKey(overrides: Partial<ApiKey> = {}): ApiKey {
  const id = overrides.id ?? newId();
  return {
    id,
    studioId: STUDIO_ID,
    memberId: 'member-1',
    name: 'Website',
    scopes: ['leads.create', 'leads.read'],
    createdAt: timeOfId(id),
    expiresAt: plus(NOW, DAY_MS),
    revokedAt: null,
    secretSha256: aSecretHash(),
    secretHint: 'a1B_',
    lastUsedAt: null,
    quotaLimit: null,
    ...overrides,
  };
}

/** Returns a refused request for the request log, with a new id. */
export function aLoggedRequest(overrides: Partial<LoggedRequest> = {}): LoggedRequest {
  return {
    studioId: STUDIO_ID,
    id: newId(),
    operation: 'createLead',
    apiKeyId: newId(),
    secretHint: 'a1B_',
    status: 400,
    code: 'integration_invalid_request',
    faultyFields: ['note', 'Idempotency-Key'],
    requestId: newId(),
    leadId: null,
    replayed: false,
    durationMs: 12,
    omitted: 0,
    ...overrides,
  };
}

/** Returns the hash of a new secret. */
export const aSecretHash = (): Uint8Array => Uint8Array.from(randomBytes(32));

/** Texts that layers between a caller and the disk are known to change, truncate or misread. */
export const HARD_TEXTS: Readonly<Record<string, string>> = {
  emoji: '👩🏽‍🚀 🇪🇺 ❤️ 1️⃣',
  'combining marks': 'e\u0301 and \u00e9, q\u0323\u0307 and q\u0307\u0323, Z\u0351\u036b\u0343\u036a',
  'right to left': '\u05e9\u05dc\u05d5\u05dd \u202bשלום\u202c \u200f123\u200e مرحبا',
  quotes: `' '' " "" \` \\ \\' \\n ; -- /* */ ) %_? :id $1 @p`,
  'names with a meaning elsewhere': '__proto__ $set constructor a.b {"$gt":""} null undefined NaN',
  'line ends': 'a\nb\r\nc\rd\u2028e\u2029f\u0085g\n',
  'blanks at both ends': ' \t\u00a0\u3000 x \u3000\u00a0\t ',
  'control characters': '\u0001\u0008\u001b[31m\u007f\u009f',
  'byte order mark in front': '\ufeffx\ufeff',
  'private use and noncharacters': '\ue000\ufffe\uffff\u{10fffe}\u{10ffff}\ufdd0',
  'the replacement character': '\ufffd',
  'other digits': '٠١٢٣ ०१२३ 𝟎𝟏𝟐𝟑',
  'looks like a number': '007',
  'one blank': ' ',
};
