import type { Studio } from '../domain/studio.ts';
import { StoreUnavailable, type StudioPut } from './store.ts';

/* What cores of release 1.1, which may run beside this one, read and write, and this release itself has no use for. */

/** The version of the rule by which release 1.1 compares contacts. A lead or studio of another one it would rewrite. */
export const CONTACT_RULE_VERSION = 2;

/**
 * Returns the regions by which leads of a studio may have keys whose claims a core of release 1.1 renews; of a renewal
 * that cannot be read, none.
 */
export function regionsOfRenewal(renewal: unknown): readonly unknown[] {
  const { formerRules } = Object(renewal);
  return Array.isArray(formerRules) ? formerRules.map((rule) => Object(rule).region) : [null];
}

/** Returns the regions to note as former ones when a studio is put, which ends a renewal of release 1.1. */
export const regionsToNote = (
  before: Studio,
  { regionCode }: StudioPut,
  isRenewing: boolean,
): Studio['formerRegions'] =>
  isRenewing || (regionCode !== undefined && regionCode !== before.regionCode)
    ? [before.regionCode, ...before.formerRegions]
    : [];

/** @param database the subject of the message */
export const ofFirstRelease = (database: string): StoreUnavailable =>
  new StoreUnavailable(
    `${database} has data of release 1.0: start release 1.1 first, wait until its command \`lead-intake claims\` lists nothing, then start this release`,
  );
