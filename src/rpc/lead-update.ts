import type { Lead, UpdateLeadRequest } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Faults } from '../domain/refusal.ts';
import type { UpdateLeadCommand } from '../usecases/update-lead.ts';
import { contactFromWire, dateFromWire } from './convert.ts';

/** The fields that an update mask may name, each with whether a lead without a mask contains it. */
const FIELDS: Readonly<Record<string, (lead: Lead) => boolean>> = {
  display_name: ({ displayName }) => displayName !== '',
  contact: ({ contact }) => contact !== undefined,
  source_id: ({ sourceId }) => sourceId !== undefined,
  note: ({ note }) => note !== undefined,
};
const PATHS = Object.keys(FIELDS);

/** Returns the changes: the fields that the mask names, without a mask those present. Adds the faults of the mask. */
export function updateFromWire(request: UpdateLeadRequest, faults: Faults): UpdateLeadCommand {
  const { studioId, lead, updateMask, expectedUpdateTime, memberId, requestId } = request;
  const paths = updateMask?.paths ?? [];
  if (lead && lead.studioId !== '' && lead.studioId !== studioId) {
    faults.note('lead.studioId', 'must be empty, or the same as studioId');
  }
  if (paths.some((path) => !PATHS.includes(path))) {
    faults.note('updateMask', `must name ${PATHS.join(', ')} only; the contact is replaced whole`);
  }
  if ((expectedUpdateTime?.nanos ?? 0) % 1_000_000 !== 0) {
    faults.note('expectedUpdateTime', 'must be in whole milliseconds, as the update_time of a lead is');
  }
  const expectedUpdatedAt = dateFromWire(expectedUpdateTime);
  if (Number.isNaN(expectedUpdatedAt?.getTime())) faults.note('expectedUpdateTime', 'must be a time from 1970 on');
  const named = paths.length > 0 ? paths : PATHS.filter((path) => lead && FIELDS[path]?.(lead));
  return {
    studioId,
    leadId: lead?.id ?? '',
    fields: {
      ...(named.includes('display_name') && { displayName: lead?.displayName ?? '' }),
      ...(named.includes('contact') && { contact: contactFromWire(lead?.contact) }),
      ...(named.includes('source_id') && { sourceId: lead?.sourceId ?? null }),
      ...(named.includes('note') && { note: lead?.note ?? null }),
    },
    expectedUpdatedAt,
    memberId,
    requestId,
  };
}
