import type { Rules } from './rules.ts';
import type { Scenario, Step, World } from './world.ts';

/** Returns the claims of a lead: its contact as normalized for the region, and the text itself, which is the same in every region. */
export function claimsOf(rules: Rules, region: number, contact: string): readonly string[] {
  const form = `${contact.toLowerCase()} in ${region}`;
  return rules.claimsText ? [form, contact] : [form];
}

/** Whether two sets of claims overlap. */
export const overlap = (some: readonly string[], others: readonly string[]): boolean =>
  some.some((claim) => others.includes(claim));

/** The studio's region changes. Leads, calls and movers keep the claims that they have. */
export function* regionSteps({ newRegions = 0 }: Scenario, world: World): Iterable<Step> {
  const { region } = world;
  if (region < newRegions) yield [`the region changes to ${region + 1}`, { ...world, region: region + 1 }];
}
