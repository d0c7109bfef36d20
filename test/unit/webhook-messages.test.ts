import { createHmac } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../common/secret.ts';
import {
  LeadChangeKind as Kind,
  type LeadChange,
  LeadChangeSchema,
  LeadSchema,
  LeadStage,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { headersOf, isWanted, messageOf } from '../../relay/message.ts';

const ID = '01970000-0000-7000-8000-000000000001';
const time = (iso: string) => timestampFromDate(new Date(iso));

/** A change of a lead with a name that no escape of JSON changes in length. */
function aChange(kinds: readonly Kind[], lead: MessageInitShape<typeof LeadChangeSchema>['lead'] = {}): LeadChange {
  return create(LeadChangeSchema, {
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
}

const ENQUIRY = { time: time('2026-11-25T09:30:00.123Z'), displayName: 'Ada', note: 'Still free on Monday?' };

describe('the payload', () => {
  // @proves relay-9
  test('is thin: ids, revision and kinds, and nothing of a person', () => {
    const { id, body } = messageOf(aChange([Kind.CREATED, Kind.STAGE_CHANGED], { enquiries: [ENQUIRY] }), 'thin');
    expect(id).toBe(`${ID}_1764063000123`);
    expect(JSON.parse(body)).toEqual({
      type: 'lead.changed',
      timestamp: '2026-11-25T09:30:00.123Z',
      data: { studioId: 'demo', leadId: ID, revision: '1764063000123', kinds: ['created', 'stage_changed'] },
    });
  });

  test('is full by choice: the lead with its contact and enquiries', () => {
    const lead = { sourceId: ID, note: 'Hello', enquiries: [ENQUIRY] };
    const sent = JSON.parse(messageOf(aChange([Kind.ENQUIRED], lead), 'full').body).data.lead;
    expect(sent).toEqual({
      displayName: 'Ada Ünlü 🚀',
      contact: { email: 'ada@example.org' },
      sourceId: ID,
      note: 'Hello',
      stage: 'trial_booked',
      createTime: '2026-11-25T09:00:00.001Z',
      updateTime: '2026-11-25T09:10:00.002Z',
      enquiries: [{ time: '2026-11-25T09:30:00.123Z', displayName: 'Ada', note: 'Still free on Monday?' }],
    });
    // Of other messages, and those that no message has. A new field of a lead is in one of the two lists.
    const others = ['id', 'studioId', 'eraseTime', 'hold'];
    expect(LeadSchema.fields.map(({ localName }) => localName).toSorted()).toEqual(
      [...Object.keys(sent), ...others].toSorted(),
    );
  });

  // @proves bounds-104
  test('has no enquiries where it would have more than 64 KiB', () => {
    const bytesOf = (length: number) => {
      const { body } = messageOf(
        aChange([Kind.ENQUIRED], { enquiries: [{ ...ENQUIRY, note: 'ü'.repeat(length) }] }),
        'full',
      );
      return [Buffer.byteLength(body), 'enquiries' in JSON.parse(body).data.lead];
    };
    const [bytes] = bytesOf(0) as [number];
    const most = Math.floor((64 * 1024 - bytes) / 2);
    expect(bytesOf(most)[1]).toBe(true);
    expect(bytesOf(most)[0]).toBeGreaterThan(64 * 1024 - 2);
    expect(bytesOf(most + 1)[1]).toBe(false);
  });

  test.each(['thin', 'full'] as const)('of an erasure has nothing of the person: %s', (payload) => {
    const erased = { displayName: '', eraseTime: time('2026-11-25T09:30:00.123Z') };
    expect(JSON.parse(messageOf(aChange([Kind.ERASED], erased), payload).body)).toEqual({
      type: 'lead.erased',
      timestamp: '2026-11-25T09:30:00.123Z',
      data: { studioId: 'demo', leadId: ID, revision: '1764063000123', kinds: ['erased'] },
    });
  });

  test('calls a kind of a later release "changed"', () => {
    expect(JSON.parse(messageOf(aChange([77 as Kind, 78 as Kind, Kind.UPDATED]), 'thin').body).data.kinds).toEqual([
      'changed',
      'updated',
    ]);
  });
});

test('an endpoint is sent the kinds that it names, erasures, and kinds of later releases', () => {
  const wanted = (kinds: readonly Kind[]) => isWanted(aChange(kinds), ['created', 'stage_changed']);
  expect([
    wanted([Kind.CREATED]),
    wanted([Kind.UPDATED, Kind.STAGE_CHANGED]),
    wanted([Kind.ERASED]),
    wanted([77 as Kind]),
  ]).toEqual(Array(4).fill(true));
  expect([wanted([Kind.UPDATED]), wanted([Kind.RESENT, Kind.ENQUIRED])]).toEqual([false, false]);
  expect(isWanted(aChange([Kind.RESENT]), undefined)).toBe(true);
  // Of an erased lead that is sent again, and of kinds that the core does not know.
  expect(isWanted(aChange([Kind.RESENT], { eraseTime: time('2026-11-25T09:20:00Z') }), ['created'])).toBe(true);
  expect(wanted([])).toBe(true);
});

// @proves relay-2
describe('the signatures', () => {
  const SECRETS = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLwSw', 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'] as const;
  const message = messageOf(aChange([Kind.CREATED]), 'full');
  const now = new Date();

  test('are those of the specification: of id, time in seconds and body, by HMAC with SHA-256', () => {
    const key = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLwSw', 'base64');
    const signed = `${message.id}.${Math.floor(now.getTime() / 1000)}.${message.body}`;
    expect(headersOf(message, [new Secret(SECRETS[0])], now)).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': message.id,
      'webhook-timestamp': `${Math.floor(now.getTime() / 1000)}`,
      'webhook-signature': `v1,${createHmac('sha256', key).update(signed).digest('base64')}`,
    });
  });

  test('are one for each secret, in one header: a receiver with either accepts it', () => {
    const headers = headersOf(
      message,
      SECRETS.map((secret) => new Secret(secret)),
      now,
    );
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2);
    for (const secret of SECRETS)
      expect(new Webhook(secret).verify(message.body, headers)).toEqual(JSON.parse(message.body));
    expect(() => new Webhook('whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA').verify(message.body, headers)).toThrow();
  });

  test('are of these bytes, this id and this time', () => {
    const headers = headersOf(message, [new Secret(SECRETS[0])], now);
    const verify = (changed: object, body = message.body) =>
      new Webhook(SECRETS[0]).verify(body, { ...headers, ...changed });
    expect(() => verify({})).not.toThrow();
    expect(() => verify({}, `${message.body} `)).toThrow();
    expect(() => verify({ 'webhook-id': `${message.id}0` })).toThrow();
    expect(() => verify({ 'webhook-timestamp': `${Math.floor(now.getTime() / 1000) + 1}` })).toThrow();
  });
});
