import { createHmac } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { TEXT_FIELDS } from '../../common/rules/field-rules.ts';
import { Secret } from '../../common/secret.ts';
import {
  EnquirySchema,
  LeadChangeKind as Kind,
  LeadChangeSchema,
  LeadSchema,
  LeadStage,
  PullLeadChangesResponseSchema,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { FeedChange } from '../../relay/core.ts';
import { createMessage, isWanted, signHeaders } from '../../relay/message.ts';
import { payloadFaults, payloadFields } from '../support/webhook-payloads.ts';

const ID = '01970000-0000-7000-8000-000000000001';
const time = (iso: string) => timestampFromDate(new Date(iso));

/** Returns a change of a lead whose name has characters of several bytes. */
function aChange(
  kinds: readonly Kind[],
  lead: MessageInitShape<typeof LeadChangeSchema>['lead'] = {},
  restores: Pick<FeedChange, 'databaseEpoch' | 'restoredToTime'> = { databaseEpoch: 0n, restoredToTime: undefined },
): FeedChange {
  const change = create(LeadChangeSchema, {
    lead: {
      id: ID,
      studioId: 'demo',
      displayName: 'Ada Ünlü 🚀',
      contact: { value: { case: 'email', value: 'ada@example.org' } },
      stage: LeadStage.TRIAL_BOOKED,
      createTime: time('2026-11-25T09:00:00.001Z'),
      updateTime: time('2026-11-25T09:10:00.002Z'),
      ...lead,
    } as object,
    revision: 1_764_063_000_123n,
    kinds: kinds.map((kind) => ({ kind, time: time('2026-11-25T09:30:00.123Z') })),
  });
  return { ...change, ...restores };
}

const ENQUIRY = {
  id: ID.replace('1', '2'),
  time: time('2026-11-25T09:30:00.123Z'),
  displayName: 'Ada',
  contact: { value: { case: 'phone', value: '+49 30 1234567' } },
  note: 'Still free on Monday?',
} as const;

describe('the payload', () => {
  // @proves secrets-5
  test('a thin payload has ids, revision and kinds, but no personal data', () => {
    const { id, body } = createMessage(aChange([Kind.CREATED, Kind.STAGE_CHANGED], { enquiries: [ENQUIRY] }), 'thin');
    expect(id).toBe(`${ID}_1764063000123`);
    expect(JSON.parse(body)).toEqual({
      type: 'lead.changed',
      timestamp: '2026-11-25T09:30:00.123Z',
      data: {
        studioId: 'demo',
        leadId: ID,
        revision: '1764063000123',
        kinds: ['created', 'stage_changed'],
        databaseEpoch: '0',
      },
    });
  });

  test('a payload reports restores of the database like a pull', () => {
    const restores = { databaseEpoch: 2n ** 53n + 1n, restoredToTime: time('2026-11-24T01:55:00.000Z') };
    expect(JSON.parse(createMessage(aChange([Kind.RESENT], {}, restores), 'thin').body).data).toMatchObject({
      databaseEpoch: '9007199254740993',
      restoredToTime: '2026-11-24T01:55:00.000Z',
    });
    // A new field of a pull belongs in a payload, or concerns only the pull.
    const pullFields = PullLeadChangesResponseSchema.fields.map(({ localName }) => localName);
    expect(pullFields).toEqual(['changes', 'heldBack', ...Object.keys(restores)]);
  });

  test('a full payload has the lead with its contact and enquiries', () => {
    const texts = Object.fromEntries(TEXT_FIELDS.map((field) => [field, `The ${field}`]));
    const lead = { ...texts, enquiries: [{ ...ENQUIRY, ...texts }] };
    const sent = JSON.parse(createMessage(aChange([Kind.ENQUIRED], lead), 'full').body).data.lead;
    expect(sent).toEqual({
      ...texts,
      contact: { email: 'ada@example.org' },
      stage: 'trial_booked',
      createTime: '2026-11-25T09:00:00.001Z',
      updateTime: '2026-11-25T09:10:00.002Z',
      enquiries: [{ id: ENQUIRY.id, time: '2026-11-25T09:30:00.123Z', ...texts, contact: { phone: '+49 30 1234567' } }],
    });
    // The same holds for enquiries.
    expect(EnquirySchema.fields.map(({ localName }) => localName).toSorted()).toEqual(
      Object.keys(sent.enquiries[0]).toSorted(),
    );
    // These fields have another place in a payload, or none. Every new field of a lead belongs in one of the two lists.
    const others = ['id', 'studioId', 'eraseTime', 'apiKeyId'];
    expect(LeadSchema.fields.map(({ localName }) => localName).toSorted()).toEqual(
      [...Object.keys(sent), ...others].toSorted(),
    );
  });

  // @proves bounds-104
  test('a payload omits enquiries if it would exceed 64 KiB with them', () => {
    const toBytes = (length: number) => {
      const { body } = createMessage(
        aChange([Kind.ENQUIRED], { enquiries: [{ ...ENQUIRY, note: 'ü'.repeat(length) }] }),
        'full',
      );
      return [Buffer.byteLength(body), 'enquiries' in JSON.parse(body).data.lead];
    };
    const [bytes] = toBytes(0) as [number];
    const most = Math.floor((64 * 1024 - bytes) / 2);
    expect(toBytes(most)[1]).toBe(true);
    expect(toBytes(most)[0]).toBeGreaterThan(64 * 1024 - 2);
    expect(toBytes(most + 1)[1]).toBe(false);
  });

  test.each(['thin', 'full'] as const)('the payload of an erasure has no personal data: %s', (payload) => {
    const erased = { displayName: '', eraseTime: time('2026-11-25T09:30:00.123Z') };
    expect(JSON.parse(createMessage(aChange([Kind.ERASED], erased), payload).body)).toEqual({
      type: 'lead.erased',
      timestamp: '2026-11-25T09:30:00.123Z',
      data: { studioId: 'demo', leadId: ID, revision: '1764063000123', kinds: ['erased'], databaseEpoch: '0' },
    });
  });

  test('a kind of a later release is called "changed" in a payload', () => {
    expect(JSON.parse(createMessage(aChange([77 as Kind, 78 as Kind, Kind.UPDATED]), 'thin').body).data.kinds).toEqual([
      'changed',
      'updated',
    ]);
  });
});

/** Returns the paths of all fields of a value, such as `data.kinds`. `[]` stands for the elements of a list. */
function pathsIn(value: unknown, prefix = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => pathsIn(each, `${prefix.slice(0, -1)}[].`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => [prefix + name, ...pathsIn(field, `${prefix}${name}.`)]);
}

/** Return the names of an enum as payloads have them, and its numbers. Both omit the unspecified value. */
const namesIn = (members: object) =>
  Object.entries(members).flatMap(([name, number]) =>
    typeof number === 'number' && number > 0 ? [name.toLowerCase()] : [],
  );
const numbersIn = <Value extends number>(members: Readonly<Record<string, string | Value>>): Value[] =>
  Object.values(members).filter((value): value is Value => typeof value === 'number' && value > 0);

// @proves relay-13
describe('the JSON schema of payloads', () => {
  test('the schema accepts payloads with every field, kind and stage, and lists no other field', () => {
    const texts = { ...Object.fromEntries(TEXT_FIELDS.map((field) => [field, field])), sourceId: ID };
    const email = { value: { case: 'email', value: 'ada@example.org' } } as const;
    const restores = { databaseEpoch: 2n ** 63n - 1n, restoredToTime: ENQUIRY.time };
    const kinds = [...numbersIn(Kind).filter((kind) => kind !== Kind.ERASED), 77 as Kind];
    const changes = [
      ...numbersIn(LeadStage).map((stage) => aChange(kinds, { stage, enquiries: [{ ...ENQUIRY, ...texts }] })),
      aChange(kinds, { ...texts, contact: ENQUIRY.contact, enquiries: [{ ...ENQUIRY, contact: email }] }, restores),
      aChange([Kind.ERASED], { displayName: '', eraseTime: ENQUIRY.time }, restores),
    ];
    const bodies = changes.flatMap((change) =>
      (['thin', 'full'] as const).map((payload) => createMessage(change, payload).body),
    );
    expect(bodies.flatMap(payloadFaults)).toEqual([]);
    const paths = new Set(bodies.flatMap((body) => pathsIn(JSON.parse(body))));
    expect(payloadFields().flatMap(({ path }) => (paths.has(path) ? [] : path))).toEqual([]);
  });

  test('the schema lists the kinds and stages of the feed, and accepts others', () => {
    const listed = (path: string) => payloadFields().find((field) => field.path === path)?.schema;
    expect(listed('data.kinds')?.items?.anyOf?.[0]?.enum?.toSorted()).toEqual([...namesIn(Kind), 'changed'].toSorted());
    expect(listed('data.lead.stage')?.anyOf?.[0]?.enum).toEqual(namesIn(LeadStage));
  });
});

test('an endpoint gets the kinds that it names, erasures, and kinds of later releases', () => {
  const wanted = (kinds: readonly Kind[]) => isWanted(aChange(kinds), ['created', 'stage_changed']);
  expect([
    wanted([Kind.CREATED]),
    wanted([Kind.UPDATED, Kind.STAGE_CHANGED]),
    wanted([Kind.ERASED]),
    wanted([77 as Kind]),
  ]).toEqual(Array(4).fill(true));
  expect([wanted([Kind.UPDATED]), wanted([Kind.RESENT, Kind.ENQUIRED])]).toEqual([false, false]);
  expect(isWanted(aChange([Kind.RESENT]), undefined)).toBe(true);
  // An endpoint also gets resent leads that are erased, and changes whose kinds the core could not read.
  expect(isWanted(aChange([Kind.RESENT], { eraseTime: time('2026-11-25T09:20:00Z') }), ['created'])).toBe(true);
  expect(wanted([])).toBe(true);
});

// @proves relay-2
describe('the signatures', () => {
  const SECRETS = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLwSw', 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'] as const;
  const message = createMessage(aChange([Kind.CREATED]), 'full');
  const now = new Date();

  test('signatures follow the specification: HMAC-SHA-256 of id, time in seconds and body', () => {
    const key = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLwSw', 'base64');
    const signed = `${message.id}.${Math.floor(now.getTime() / 1000)}.${message.body}`;
    expect(signHeaders(message, [new Secret(SECRETS[0])], now)).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': message.id,
      'webhook-timestamp': `${Math.floor(now.getTime() / 1000)}`,
      'webhook-signature': `v1,${createHmac('sha256', key).update(signed).digest('base64')}`,
    });
  });

  test('one header has a signature for each secret, so that a receiver with either accepts it', () => {
    const headers = signHeaders(
      message,
      SECRETS.map((secret) => new Secret(secret)),
      now,
    );
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2);
    for (const secret of SECRETS)
      expect(new Webhook(secret).verify(message.body, headers)).toEqual(JSON.parse(message.body));
    expect(() => new Webhook('whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA').verify(message.body, headers)).toThrow();
  });
});
