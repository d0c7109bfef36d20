import type { Db, Filter } from 'mongodb';
import { CONTACT_RULE_VERSION, ofFirstRelease, regionsOfRenewal } from '../release-1-1.ts';
import type { StoreUnavailable } from '../store.ts';
import { NOTHING_DUE, READ, type StudioDocument } from './documents.ts';

/** The number of studios in memory at once. */
const STUDIOS_PER_PAGE = 100;

const FIELDS = { formerRegions: 1, renewal: 1 } as const;

/**
 * Ends the renewals of claims that cores of release 1.1 have begun: they would rewrite the keys that leads were opened
 * with. Safe to repeat, also concurrently.
 *
 * @returns why nothing was changed, if leads may have keys by the rule of release 1.0
 */
export async function endRenewals(database: Db): Promise<StoreUnavailable | undefined> {
  const studios = database.collection<StudioDocument>('studios');
  const isDue: Filter<StudioDocument> = { claimVersion: { $ne: CONTACT_RULE_VERSION } };
  const isOfFirst = { ...isDue, $or: [{ renewal: null }, { 'renewal.formerRules.version': 1 }] };
  if (!(await studios.findOne(isDue, { projection: { _id: 1 } }))) return undefined;
  if (await studios.findOne(isOfFirst, { projection: { _id: 1 } })) return ofFirstRelease('the database');
  for (let after = ''; ; ) {
    const page = await studios
      .find({ ...isDue, _id: { $gt: after } }, { ...READ, projection: FIELDS })
      .sort({ _id: 1 })
      .limit(STUDIOS_PER_PAGE)
      .toArray();
    for (const { _id, formerRegions, renewal } of page) {
      const regions = [...(Array.isArray(formerRegions) ? formerRegions : []), ...regionsOfRenewal(renewal)];
      await studios.updateOne(
        // Only if the region was not changed since it was read: that begins another renewal, which ends when it is read.
        { ...isDue, _id, 'renewal.since': renewal?.since ?? null } as Filter<StudioDocument>,
        { $set: { ...NOTHING_DUE, formerRegions: [...new Set(regions)] as StudioDocument['formerRegions'] & object } },
      );
    }
    const last = page.at(-1);
    if (!last || page.length < STUDIOS_PER_PAGE) return undefined;
    after = last._id;
  }
}
