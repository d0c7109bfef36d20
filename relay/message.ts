import { Webhook } from 'standardwebhooks';
import { DATA_FIELDS } from '../common/rules/field-rules.ts';
import type { Secret } from '../common/secret.ts';
import { type Enquiry, type LeadChange, LeadChangeKind, LeadStage } from '../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { type FeedChange, formatLeadState, toTimeMs } from './core.ts';
import type { EndpointSettings } from './endpoints-file.ts';

/** Bytes of a full payload, above which it has no enquiries. */
const MAX_FULL_BYTES = 64 * 1024;

const toIso = (time: Parameters<typeof toTimeMs>[0]): string => new Date(toTimeMs(time)).toISOString();

/** What is sent of a change, the same in each attempt. */
export interface Message {
  readonly id: string;
  readonly body: string;
}

/** The name of a number of an enum, as payloads have it. */
const nameIn = (names: Readonly<Record<string, number>>, wanted: number | undefined): string | undefined =>
  Object.entries(names)
    .find(([, number]) => number === wanted)?.[0]
    .toLowerCase();

/** The kinds of a change, as payloads have them; one of a later release is `changed`. */
const toPayloadKinds = ({ kinds }: LeadChange): string[] => [
  ...new Set(kinds.map(({ kind }) => nameIn(LeadChangeKind, kind) ?? 'changed')),
];

/** Whether an endpoint is sent a change: not if it has only kinds that the endpoint does not name. Erased leads always are. */
export function isWanted(change: LeadChange, wanted: EndpointSettings['kinds']): boolean {
  const kinds = toPayloadKinds(change);
  // None: the core does not know what is stored.
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

/** Returns the contact and the texts of a lead, or of an enquiry. */
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
      enquiries: lead?.enquiries.map((each) => ({ id: each.id, time: toIso(each.time), ...toData(each) })),
    }),
  };
}

/** Returns the headers of an attempt to send a message: with each secret a signature, of these very bytes at this time. */
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
