import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { Webhook } from 'standardwebhooks';
import { DATA_FIELDS } from '../common/rules/field-rules.ts';
import type { Secret } from '../common/secret.ts';
import { type Enquiry, type LeadChange, LeadChangeKind, LeadStage } from '../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { type FeedChange, formatLeadState, toTimeMs } from './core.ts';
import type { EndpointSettings } from './endpoints-file.ts';

/** A full payload larger than this leaves out enquiries; bytes. */
const MAX_FULL_BYTES = 64 * 1024;

const toIso = (time: Timestamp | undefined): string => new Date(toTimeMs(time)).toISOString();

/** The message of a change, the same in each attempt. */
export interface Message {
  readonly id: string;
  readonly body: string;
}

/** Returns the payload name of an enum's number. */
const nameIn = (names: Readonly<Record<string, number>>, wanted: number | undefined): string | undefined =>
  Object.entries(names)
    .find(([, number]) => number === wanted)?.[0]
    .toLowerCase();

/** Returns the kinds of a change, as payloads name them. A kind of a later release is `changed`. */
const toPayloadKinds = ({ kinds }: LeadChange): string[] => [
  ...new Set(kinds.map(({ kind }) => nameIn(LeadChangeKind, kind) ?? 'changed')),
];

/** Returns whether an endpoint gets a change: the change has a kind that the endpoint selects, or the lead is erased. */
export function isWanted(change: LeadChange, wanted: EndpointSettings['kinds']): boolean {
  const kinds = toPayloadKinds(change);
  // The core names no kind if it cannot read the stored ones.
  if (!wanted || change.lead?.eraseTime || kinds.length === 0) return true;
  return kinds.some((kind) => ['erased', 'changed', ...wanted].includes(kind));
}

export function createMessage(change: FeedChange, payload: EndpointSettings['payload']): Message {
  const { lead, revision } = change;
  const kinds = toPayloadKinds(change);
  const isErased = lead?.eraseTime !== undefined;
  const restores = {
    databaseEpoch: `${change.databaseEpoch}`,
    restoredToTime: change.restoredToTime && toIso(change.restoredToTime),
  };
  const data = { ...formatLeadState(change), kinds, ...restores };
  const write = (more: object) =>
    JSON.stringify({
      type: isErased ? 'lead.erased' : 'lead.changed',
      timestamp: new Date(
        Math.max(...change.kinds.map(({ time }) => toTimeMs(time)), toTimeMs(lead?.updateTime)),
      ).toISOString(),
      data: { ...data, ...more },
    });
  const id = `${lead?.id}_${revision}`;
  if (payload === 'thin' || isErased) return { id, body: write({}) };
  const full = write({ lead: fullLead(change, true) });
  return { id, body: Buffer.byteLength(full) > MAX_FULL_BYTES ? write({ lead: fullLead(change, false) }) : full };
}

/** Returns the contact and the texts of a lead or an enquiry. */
function toData(record: LeadChange['lead'] | Enquiry): object {
  const { case: type, value } = record?.contact?.value ?? {};
  const contact = type && { [type]: value };
  return Object.fromEntries(DATA_FIELDS.map((field) => [field, field === 'contact' ? contact : record?.[field]]));
}

function fullLead({ lead }: LeadChange, withEnquiries: boolean): object {
  return {
    ...toData(lead),
    stage: nameIn(LeadStage, lead?.stage),
    createTime: toIso(lead?.createTime),
    updateTime: toIso(lead?.updateTime),
    ...(withEnquiries && {
      enquiries: lead?.enquiries.map((enquiry) => ({ id: enquiry.id, time: toIso(enquiry.time), ...toData(enquiry) })),
    }),
  };
}

/** Returns the headers of an attempt, with one signature per secret over these exact bytes and this time. */
export function signHeaders({ id, body }: Message, secrets: readonly Secret[], time: Date): Record<string, string> {
  return {
    'content-type': 'application/json',
    'content-length': `${Buffer.byteLength(body)}`,
    'user-agent': 'lead-intake-relay',
    'webhook-id': id,
    'webhook-timestamp': `${Math.floor(time.getTime() / 1000)}`,
    'webhook-signature': secrets.map((secret) => new Webhook(secret.reveal()).sign(id, time, body)).join(' '),
  };
}
