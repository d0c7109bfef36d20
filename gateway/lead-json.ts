import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type Lead, LeadStage } from '../proto/gen/leadintake/v1/lead_intake_pb.ts';

/** A lead as the contract shows it: these fields, always all of them. */
export interface LeadJson {
  readonly id: string;
  readonly displayName: string;
  readonly stage: string;
  readonly sourceId: string | null;
  readonly note: string | null;
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The contract's words for the stages. */
const STAGES: Record<LeadStage, string | undefined> = {
  [LeadStage.UNSPECIFIED]: undefined,
  [LeadStage.NEW]: 'new',
  [LeadStage.CONTACTED]: 'contacted',
  [LeadStage.TRIAL_BOOKED]: 'trial_booked',
  [LeadStage.TRIAL_ATTENDED]: 'trial_attended',
  [LeadStage.WON]: 'won',
  [LeadStage.LOST]: 'lost',
};

/** All of the contract's words for the stages. */
export const STAGE_WORDS = Object.values(STAGES).filter((word) => word !== undefined);

/**
 * @throws Error when the core sent a lead that the contract cannot show
 *
 * @rule 2.1.id 2.1.displayName 2.1.stage 2.1.sourceId 2.1.note 2.1.createdAt 2.1.updatedAt 2.1.nothing-else 2.1.no-contact
 */
export function leadJson(lead: Lead | undefined): LeadJson {
  const stage = lead && STAGES[lead.stage];
  if (!stage || !lead.createTime || !lead.updateTime) throw new Error('the core sent a lead that is not complete');
  const { createTime, updateTime } = lead;
  // Most leads of a page have not changed, and writing a time costs as much as the rest of a lead.
  const isUnchanged = updateTime.seconds === createTime.seconds && updateTime.nanos === createTime.nanos;
  const createdAt = timestampDate(createTime).toISOString();
  return {
    id: lead.id,
    displayName: lead.displayName,
    stage,
    sourceId: lead.sourceId ?? null,
    note: lead.note ?? null,
    createdAt,
    updatedAt: isUnchanged ? createdAt : timestampDate(updateTime).toISOString(),
  };
}
