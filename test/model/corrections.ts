import { claimsOf, overlap } from './claims.ts';
import type { Rules } from './rules.ts';
import { type Mover, type Row, type Scenario, type Step, type World, withRow } from './world.ts';

/**
 * The CRM corrects contacts. As when leads are closed and opened, an update applies only if its lead is still as it
 * was read, so read and update are one step here.
 */
export function* correctionSteps(scenario: Scenario, rules: Rules, world: World): Iterable<Step> {
  for (const [mover, state] of world.movers.entries()) {
    const to = (next: Mover): World => ({ ...world, movers: world.movers.with(mover, next) });
    for (const row of world.rows.filter(({ durable }) => durable)) {
      const { id } = row;
      if (state.at === 'idle') {
        for (const contact of scenario.corrections ?? []) {
          if (contact === row.contact) continue;
          const claims = claimsOf(rules, world.region, contact);
          const correcting: Mover = { at: 'correct', lead: id, contact, claims };
          // The region may change between the read of the studio and the write.
          if (scenario.newRegions !== undefined)
            yield [`mover ${mover} is about to correct lead ${id}`, to(correcting)];
          else yield* writeSteps(rules, world, mover, row, correcting);
        }
      } else if (state.lead === id && state.at === 'correct') {
        yield* writeSteps(rules, world, mover, row, state);
        yield [`mover ${mover} gives up correcting lead ${id}`, to({ at: 'idle' })];
      } else if (state.lead === id && state.at === 'claim') {
        const { claims = [] } = state;
        if (row.open && !isTaken(world, row, claims)) {
          yield [`mover ${mover} claims the contact of lead ${id}`, withRow(to({ at: 'idle' }), row, { claims })];
        }
        yield [`mover ${mover} dies before lead ${id} has its claims`, to({ at: 'idle' })];
      }
    }
  }
}

function* writeSteps(
  rules: Rules,
  world: World,
  mover: number,
  row: Row,
  { contact = '', claims = [] }: Mover,
): Iterable<Step> {
  const to = (next: Mover): World => ({ ...world, movers: world.movers.with(mover, next) });
  const formerContacts = [...new Set([row.contact, ...(row.formerContacts ?? [])])].sort();
  const label = `mover ${mover} corrects the contact of lead ${row.id}`;
  if (!rules.correctionClaims && row.open) {
    yield [label, withRow(to({ at: 'claim', lead: row.id, claims }), row, { contact, formerContacts })];
  } else if (!row.open || !rules.contactIndex || !isTaken(world, row, claims)) {
    const claimed = row.open ? { claims } : {};
    yield [label, withRow(to({ at: 'idle' }), row, { contact, formerContacts, ...claimed })];
  }
}

/** Whether another lead has one of the claims. */
const isTaken = ({ rows }: World, row: Row, claims: readonly string[]): boolean =>
  rows.some((other) => other !== row && overlap(other.claims, claims));
