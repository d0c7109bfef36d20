import { overlap } from './claims.ts';
import { isRefused } from './create-lead.ts';
import { answered, type Protocol, type Work } from './protocol.ts';
import { type Call, type Reservation, type Row, type Step, type World, withCaller, withNewRow } from './world.ts';

/**
 * The other common protocol: reserve the key, write the lead, settle the reservation. A process that dies in between
 * leaves a reservation behind.
 *
 * @param isDeleted whether other calls delete a reservation that is not settled, because its process may have died
 */
export function reserveKey(isDeleted: boolean): Protocol {
  return {
    startsAt: 'reserve',
    steps(work) {
      if (work.call.at === 'reserve') return reserveSteps(work, isDeleted);
      return work.call.at === 'insert' ? insertSteps(work) : settleSteps(work);
    },
  };
}

function* reserveSteps(work: Work, isDeleted: boolean): Iterable<Step> {
  const { world, caller, call, request } = work;
  const there = world.reservations.find(({ key }) => key === request.key);
  if (!there) {
    const reservation = { key: request.key, data: request.data, lead: call.id, settled: false };
    const reserved = { ...world, reservations: [...world.reservations, reservation] };
    yield ['it reserves its key', withCaller(reserved, caller, { ...call, at: 'insert' })];
  } else if (there.data !== request.data) {
    yield ['it finds a reservation for other data', answered(work, 'conflict')];
  } else if (there.settled) {
    yield ['it finds a settled reservation', answered(work, 'replayed', there.lead)];
  } else if (isDeleted) {
    yield ['it deletes an abandoned reservation', withReservation(world, there, null)];
  }
}

function* insertSteps(work: Work): Iterable<Step> {
  const { rules, world, caller, call, request } = work;
  const own = world.reservations.find(({ lead }) => lead === call.id);
  const row: Row = { ...request, id: call.id, by: call.number, open: true, claims: call.claims, durable: true };
  const holder = world.rows.find(({ claims }) => overlap(claims, call.claims));
  if (holder && isRefused(rules, world, row)) {
    const released = own ? withReservation(world, own, null) : world;
    yield ['its insert is refused', answered({ ...work, world: released }, 'already open', holder.id)];
  } else {
    const settling: Call = { ...call, at: 'settle' };
    yield ['its insert is written', withCaller(withNewRow(world, row), caller, settling)];
  }
}

function* settleSteps(work: Work): Iterable<Step> {
  const { world, call } = work;
  const own = world.reservations.find(({ lead }) => lead === call.id);
  const settled = own ? withReservation(world, own, { ...own, settled: true }) : world;
  yield ['it settles its reservation', answered({ ...work, world: settled }, 'created', call.id)];
}

function withReservation(world: World, reservation: Reservation, changed: Reservation | null): World {
  const reservations = world.reservations.flatMap((each) => (each === reservation ? (changed ?? []) : each));
  return { ...world, reservations };
}
