import { create, type DescMessage, isFieldSet, type Message, toBinary } from '@bufbuild/protobuf';
import { DurationSchema, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { ApiKeySchema } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditEventSchema } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { MemberSchema, StudioSchema } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { CreateLeadItemSchema } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import {
  CreatedLeadDataSchema,
  CreateLeadRequestSchema,
  EnquirySchema,
  LeadChangeSchema,
  LeadImportSchema,
  LeadSchema,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { DATA_FIELDS, readTexts, TEXT_FIELDS } from '../../src/domain/lead-data.ts';
import { newId } from '../../src/domain/new-id.ts';
import {
  apiKeyToWire,
  auditEventToWire,
  dateFromWire,
  durationMsFromWire,
  leadChangeToWire,
  leadToWire,
  memberToWire,
  studioToWire,
} from '../../src/rpc/convert.ts';
import { aLead, aMember, anApiKey, aStudio, NOW, STUDIO_ID } from '../support/builders.ts';

const event = {
  studioId: STUDIO_ID,
  time: NOW,
  memberId: 'm',
  caller: 'c',
  apiKeyId: 'k',
  callId: 'i',
  leadId: 'l',
  from: 'f',
  to: 't',
};

// A value that cannot be encoded would fail a whole message, including results of other requests.
// @proves exchange-1 connect-13
describe('every value to be sent is converted to a valid message or rejected at conversion', () => {
  const sent = [
    (word: never) => toBinary(LeadSchema, leadToWire(aLead({ stage: word }), 'full')),
    (word: never) => toBinary(ApiKeySchema, apiKeyToWire(anApiKey({ scopes: [word] }))),
    (word: never) => toBinary(StudioSchema, studioToWire(aStudio({ status: word }))),
    (word: never) => toBinary(MemberSchema, memberToWire(aMember({ role: word }))),
    (word: never) => toBinary(AuditEventSchema, auditEventToWire({ ...event, action: word })),
  ];

  test('conversion to a message rejects an unknown word or an invalid time', () => {
    for (const send of sent) {
      for (const word of ['qualified', '__proto__', '', 1, null]) {
        expect(() => send(word as never)).toThrow('the invariant enum_on_wire is broken');
      }
    }
    const createdAt = new Date(Number.NaN);
    expect(() => leadToWire(aLead({ createdAt }), 'basic')).toThrow();
    expect(() => apiKeyToWire(anApiKey({ createdAt }))).toThrow();
  });
});

test('every message with lead data has all of its fields', () => {
  const creations = [CreateLeadRequestSchema, LeadImportSchema, CreateLeadItemSchema];
  for (const { name, field } of [LeadSchema, EnquirySchema, ...creations])
    expect({ name, missing: DATA_FIELDS.filter((each) => !Object.hasOwn(field, each)) }).toEqual({ name, missing: [] });
  expect(CreatedLeadDataSchema.fields.map(({ localName }) => localName)).toEqual(TEXT_FIELDS);
});

test('every field that a message has in the contract is sent', () => {
  const texts = Object.fromEntries(TEXT_FIELDS.map((field) => [field, field]));
  const { contact } = aLead();
  const enquiries = [{ id: newId(), time: NOW, contact, ...readTexts({ displayName: '', ...texts }) }];
  const lead = aLead({ ...texts, enquiries, apiKeyId: newId() });
  const kinds = [{ kind: 'created', time: NOW }] as const;
  const change = leadChangeToWire({ lead, revision: 1, since: NOW, kinds, attempts: 1 });
  const studio = { regionCode: 'DE', quotaLimit: 1, isTest: true, retention: { days: 30, since: NOW } } as const;
  const sent: readonly (readonly [DescMessage, Message | undefined])[] = [
    [LeadChangeSchema, change],
    [LeadSchema, change.lead],
    [EnquirySchema, change.lead?.enquiries[0]],
    [ApiKeySchema, apiKeyToWire(anApiKey({ revokedAt: NOW, lastUsedAt: NOW, quotaLimit: 1 }))],
    [StudioSchema, studioToWire(aStudio(studio))],
    [AuditEventSchema, auditEventToWire({ ...event, action: 'lead-updated' })],
  ];
  const unsent = sent.flatMap(([{ name, fields }, message]) =>
    fields.filter((field) => !message || !isFieldSet(message, field)).map((field) => `${name}.${field.name}`),
  );
  // Only erased leads have a time of erasure.
  expect(unsent).toEqual(['Lead.erase_time']);
});

test('fractions of a millisecond are dropped', () => {
  for (const [nanos, ms] of [
    [0, 0],
    [999_999, 0],
    [1_000_000, 1],
    [999_500_000, 999],
  ] as const) {
    for (const seconds of [0n, 1_714_816_800n]) {
      expect(dateFromWire(create(TimestampSchema, { seconds, nanos }))).toEqual(new Date(Number(seconds) * 1000 + ms));
      expect(durationMsFromWire(create(DurationSchema, { seconds, nanos }))).toBe(Number(seconds) * 1000 + ms);
    }
  }
});
