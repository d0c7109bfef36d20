import type { Rules } from './rules.ts';
import type { Renewer, Row, Scenario, Step, Studio, World } from './world.ts';
import { withRow } from './world.ts';

/**
 * Returns the claims of a lead: its contact as normalized for the region, also for the former regions while claims by
 * those may exist, and the text itself, which is the same in every region.
 */
export function claimsOf(rules: Rules, { region, formerRegions }: Studio, contact: string): readonly string[] {
  const honoured = rules.honoursFormerRegions ? [region, ...formerRegions] : [region];
  const forms = honoured.map((each) => `${contact.toLowerCase()} in ${each}`);
  return rules.claimsText ? [...forms, contact] : forms;
}

/** Whether two sets of claims overlap. */
export const overlap = (some: readonly string[], others: readonly string[]): boolean =>
  some.some((claim) => others.includes(claim));

/**
 * The studio's region changes, and a process renews the claims of open leads until none has claims by a former
 * region.
 */
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
  // While former regions are honoured, a renewed lead keeps its claims by them, too: calls in flight may know no
  // other region.
  const target = rules.renewsInTwoSteps ? studio : { region, formerRegions: [] };
  const renewed = (contact: string) => claimsOf(rules, target, contact);
  const due = rows.filter(({ open, claims, contact }) => open && claims.join() !== renewed(contact).join());
  if (renewer.at === 'idle') {
    for (const { id, claims: was, contact } of due) {
      yield [`the claims of lead ${id} are recomputed`, to({ at: 'renew', lead: id, was, claims: renewed(contact) })];
    }
    const isAtWork = [...callers, ...movers].some(({ at }) => at === 'insert' || at === 'look' || at === 'open');
    if (formerRegions.length > 0 && due.length === 0 && (outlastsRenewal || !isAtWork)) {
      yield ['former regions are no longer honoured', { ...world, studio: { region, formerRegions: [] } }];
    }
  } else {
    yield ['the renewing process dies', to({ at: 'idle' })];
    yield ['the claims of a lead are renewed', withRenewedClaims(rules, to({ at: 'idle' }), renewer)];
  }
}

function withRenewedClaims(rules: Rules, world: World, { lead, was = [], claims = [] }: Renewer): World {
  const row = world.rows.find(({ id }) => id === lead);
  if (!row || (rules.renewsOnlyIfUnchanged && row.claims.join() !== was.join())) return world;
  const isFree = (some: readonly string[]) =>
    !world.rows.some((other: Row) => other !== row && overlap(other.claims, some));
  return isFree(claims) ? withRow(world, row, { claims }) : world;
}
