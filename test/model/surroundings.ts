import { claimsOf, overlap } from './claims.ts';
import { isRefused } from './create-lead.ts';
import type { Rules } from './rules.ts';
import {
  freeNumber,
  type Mover,
  type Request,
  type Scenario,
  type Step,
  type World,
  withCaller,
  withNewRow,
  withRow,
} from './world.ts';

/** Callers send requests, and repeat them when the process that served them has died. */
export function* callerSteps(rules: Rules, world: World, requests: readonly Request[]): Iterable<Step> {
  for (const [caller, { at }] of world.callers.entries()) {
    if (at === 'silent' || at === 'unsure') {
      const number = freeNumber(world, caller);
      const claims = claimsOf(rules, world.region, requests[caller]?.contact ?? '');
      yield [
        `caller ${caller} sends its request`,
        withCaller(world, caller, { at: 'insert', number, id: number, claims }),
      ];
    } else if (at !== 'answered') {
      yield [`caller ${caller}: its process dies`, withCaller(world, caller, { at: 'unsure' })];
    }
  }
}

/** A majority stores a write, or a failover undoes it; an insert arrives late, or never. */
export function* databaseSteps(rules: Rules, world: World): Iterable<Step> {
  for (const row of world.rows.filter(({ durable }) => !durable)) {
    yield [`a majority stores lead ${row.id}`, withRow(world, row, { durable: true })];
    yield [`a failover undoes lead ${row.id}`, withRow(world, row, null)];
  }
  for (const row of world.late) {
    const rest = { ...world, late: world.late.filter((each) => each !== row) };
    yield [`the insert of lead ${row.id} is lost after all`, rest];
    if (!isRefused(rules, world, row)) yield [`lead ${row.id} is written late`, withNewRow(rest, row)];
  }
}

/**
 * The CRM closes and opens leads. An update applies only if its lead is still as it was read, so read and update are
 * one step here. Writes that follow an update become durable after it, so the update needs no durability of its own.
 */
export function* moverSteps(scenario: Scenario, rules: Rules, world: World): Iterable<Step> {
  for (const [mover, { at, lead, claims: initialClaims, contact: contactRead }] of world.movers.entries()) {
    if (at === 'correct' || at === 'claim') continue;
    const to = (state: Mover): World => ({ ...world, movers: world.movers.with(mover, state) });
    for (const row of world.rows.filter(({ id, durable }) => durable && (at === 'idle' || id === lead))) {
      const { id, open, contact } = row;
      const claims = initialClaims ?? claimsOf(rules, world.region, contact);
      const holder = world.rows.find((each) => overlap(each.claims, claims));
      const canClaim = !holder || !rules.contactIndex;
      if (at === 'look') {
        const conflictsWithItself = holder === row && !rules.moverExcludesItself;
        yield [
          `mover ${mover} finds the conflicting lead`,
          to(conflictsWithItself ? { at: 'in conflict with itself' } : { at: 'idle' }),
        ];
      } else if (open) {
        if (at === 'idle')
          yield [
            `mover ${mover} closes lead ${id}`,
            withRow(world, row, { open: false, claims: rules.closingFrees ? [] : row.claims }),
          ];
        else yield [`mover ${mover} finds lead ${id} open`, to({ at: 'idle' })];
      } else if (at === 'idle' && scenario.newRegions !== undefined) {
        // Between reading studio and lead and the write, the region may change and the contact may be corrected.
        yield [`mover ${mover} is about to open lead ${id}`, to({ at: 'open', lead: id, contact, claims })];
      } else if (at === 'open' && contact !== contactRead && rules.opensOnlyIfUnchanged) {
        yield [`mover ${mover} finds another contact of lead ${id}`, to({ at: 'idle' })];
      } else if (canClaim || !rules.reopeningClaims) {
        const opened = withRow(to({ at: 'idle' }), row, { open: true, claims: rules.reopeningClaims ? claims : [] });
        yield [`mover ${mover} opens lead ${id}`, opened];
      } else if (world.movers.length > 1) {
        // A mover that runs alone finds the lead that caused the refusal: no other mover could have opened it
        // meanwhile.
        yield [`mover ${mover} may not open lead ${id}`, to({ at: 'look', lead: id })];
      } else if (at === 'open') {
        yield [`mover ${mover} may not open lead ${id}`, to({ at: 'idle' })];
      }
    }
  }
}
