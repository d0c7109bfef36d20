import { type ClaimRenewal, fullRenewal, renewalAfter } from '../domain/claim-renewal.ts';
import type { RegionCode } from '../domain/contact.ts';
import type { Studio } from '../domain/studio.ts';
import type { Checked } from './checked.ts';
import { type StudioPut, UnreadableRecord } from './store.ts';

/** Returns a studio's region and claim renewal after a put; an absent region does not change. */
export function regionAfterPut(
  before: Studio,
  renewalBefore: Checked<ClaimRenewal> | null,
  { regionCode }: StudioPut,
  now: Date,
): { readonly region: RegionCode | null; readonly renewal: ClaimRenewal | null } {
  const region = regionCode === undefined ? before.regionCode : regionCode;
  const isKnown = !(renewalBefore instanceof UnreadableRecord);
  const current = isKnown ? renewalBefore : fullRenewal({ regionCode: region, formerRules: [] }, now);
  return { region, renewal: renewalAfter(before, region, current, now) };
}
