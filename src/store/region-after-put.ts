import { type ClaimRenewal, renewalAfter, renewalOfEverything } from '../domain/claim-renewal.ts';
import type { RegionCode } from '../domain/contact.ts';
import type { Studio } from '../domain/studio.ts';
import type { Checked } from './checked.ts';
import { type StudioPut, UnreadableRecord } from './store.ts';

/** A studio's region, and what is to be renewed, once it was put over what is there. What a put does not give stays. */
export function regionAfterPut(
  before: Studio,
  renewalBefore: Checked<ClaimRenewal> | null,
  { regionCode }: StudioPut,
  now: Date,
): { readonly region: RegionCode | null; readonly renewal: ClaimRenewal | null } {
  const region = regionCode === undefined ? before.regionCode : regionCode;
  const isKnown = !(renewalBefore instanceof UnreadableRecord);
  const underWay = isKnown ? renewalBefore : renewalOfEverything({ regionCode: region, formerRules: [] }, now);
  return { region, renewal: renewalAfter(before, region, underWay, now) };
}
