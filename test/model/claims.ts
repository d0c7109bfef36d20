import type { Rules } from './rules.ts';
import type { Renewer, Row, Scenario, Step, Studio, World } from './world.ts';
import { withRow } from './world.ts';

/**
 * What a lead of a studio claims: the form of its contact by the region, as long as claims by former regions may stand also
 * the forms by those, and the text itself, which is the same in every region.
 */
export function claimsOf(rules: Rules, { region, formerRegions }: Studio, contact: string): readonly string[] {
  const heldTo = rules.holdsToFormerRegions ? [region, ...formerRegions] : [region];
  const forms = heldTo.map((each) => `${contact.toLowerCase()} in ${each}`);
  return rules.claimsText ? [...forms, contact] : forms;
}

/** Whether two have a claim in common. */
export const overlap = (some: readonly string[], others: readonly string[]): boolean =>
  some.some((claim) => others.includes(claim));

/** The studio's region changes, and somebody makes the claims of open leads anew until none is left by a former region. */
export function* renewalSteps(scenario: Scenario, rules: Rules, world: World): Iterable<Step> {
  const { newRegions = 0, outlastsRenewal = false } = scenario;
  if (newRegions === 0) return;
  const { studio, renewer, rows, callers, movers } = world;
  const { region, formerRegions } = studio;
  if (region < newRegions) {
    const remembered = rules.remembersAllRegions ? formerRegions : [];
    yield [
      `the region changes to ${region + 1}`,
      { ...world, studio: { region: region + 1, formerRegions: [...remembered, region] } },
    ];
  }
  const to = (state: Renewer): World => ({ ...world, renewer: state });
  // As long as former regions are held to, a renewed lead holds to them, too: calls are under way that know no other.
  const target = rules.renewsInTwoSteps ? studio : { region, formerRegions: [] };
  const renewed = (contact: string) => claimsOf(rules, target, contact);
  const due = rows.filter(({ open, claims, contact }) => open && claims.join() !== renewed(contact).join());
  if (renewer.at === 'idle') {
    for (const { id, claims: was, contact } of due) {
      yield [
        `the claims of lead ${id} are computed anew`,
        to({ at: 'renew', lead: id, was, claims: renewed(contact) }),
      ];
    }
    const isAtWork = [...callers, ...movers].some(({ at }) => at === 'insert' || at === 'look' || at === 'open');
    if (formerRegions.length > 0 && due.length === 0 && (outlastsRenewal || !isAtWork)) {
      yield ['former regions are held to no longer', { ...world, studio: { region, formerRegions: [] } }];
    }
  } else {
    yield ['who renews claims dies', to({ at: 'idle' })];
    yield ['the claims of a lead are made anew', withRenewedClaims(rules, to({ at: 'idle' }), renewer)];
  }
}

function withRenewedClaims(rules: Rules, world: World, { lead, was = [], claims = [] }: Renewer): World {
  const row = world.rows.find(({ id }) => id === lead);
  if (!row || (rules.renewsOnlyWhatItRead && row.claims.join() !== was.join())) return world;
  const isFree = (some: readonly string[]) =>
    !world.rows.some((other: Row) => other !== row && overlap(other.claims, some));
  return isFree(claims) ? withRow(world, row, { claims }) : world;
}
