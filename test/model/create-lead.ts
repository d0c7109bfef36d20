import { overlap } from './claims.ts';
import { answered, type Work } from './protocol.ts';
import type { Rules } from './rules.ts';
import { type Call, type Found, freeNumber, type Row, type Step, type World, withCaller, withNewRow } from './world.ts';

/**
 * The possible next steps of a call: a single insert that the unique indexes decide. Whatever its outcome, the response is read
 * from what is stored. Each step is one message to the database, which is carried out or not.
 */
export function creationSteps(work: Work): Iterable<Step> {
  if (work.call.at === 'insert') return insertSteps(work);
  return work.call.at === 'written' ? writtenSteps(work) : lookSteps(work);
}

function* insertSteps(work: Work): Iterable<Step> {
  const { scenario, rules, world, caller, call, request } = work;
  const looking: Call = { ...call, at: 'look' };
  const durable = scenario.failovers !== true;
  const row: Row = { ...request, id: call.id, by: call.number, open: true, claims: call.claims, durable };
  if (isRefused(rules, world, row)) {
    yield ['its insert is refused', withCaller(world, caller, looking)];
  } else {
    const next = withNewRow(world, row);
    const after = rules.awaitsMajority
      ? withCaller(next, caller, { ...call, at: 'written' })
      : answered({ ...work, world: next }, 'created', row.id);
    yield ['its insert is written', after];
  }
  yield ['its insert is lost', withCaller(world, caller, looking)];
  if (world.late.length < (scenario.lateInserts ?? 0)) {
    yield ['its insert is delayed', withCaller({ ...world, late: [...world.late, row] }, caller, looking)];
  }
}

function* writtenSteps(work: Work): Iterable<Step> {
  const { world, caller, call } = work;
  const isDurable = world.rows.some(({ id, durable }) => id === call.id && durable);
  if (isDurable) yield ['its insert is answered', answered(work, 'created', call.id)];
  yield ['the answer to its insert is lost', withCaller(world, caller, { ...call, at: 'look' })];
}

function* lookSteps(work: Work): Iterable<Step> {
  const { rules, world, caller, call, request } = work;
  const rows = world.rows.filter(({ durable }) => durable || !rules.readsMajority);
  const byKey = found(rows.find(({ key }) => key === request.key));
  const looksTwice = rules.looks === 'key, contact, key again';
  if (looksTwice && !call.hasLookedUpKey) {
    const settled = () => decided({ ...work, call: { ...call, byKey, byContact: null } });
    const goesOn = () => withCaller(world, caller, { ...call, hasLookedUpKey: true });
    yield ['it looks up its key', byKey ? settled() : goesOn()];
  } else if (call.byKey === undefined && (!looksTwice || call.byContact !== undefined)) {
    yield ['it looks up its key', decided({ ...work, call: { ...call, byKey } })];
  }
  const isNext = { 'key, contact, key again': call.hasLookedUpKey, 'key, then contact': call.byKey !== undefined };
  if (call.byContact === undefined && (rules.looks === 'both at once' || isNext[rules.looks])) {
    const byContact = found(rows.find(({ claims }) => overlap(claims, call.claims)));
    yield ['it looks up its contact', decided({ ...work, call: { ...call, byContact } })];
  }
  yield ['its lookup is lost', again(work)];
}

/** What a call does with the leads that it has found, once it has looked for both. */
function decided(work: Work): World {
  const { rules, world, caller, call, request } = work;
  const { byKey, byContact } = call;
  if (byKey === undefined || byContact === undefined) return withCaller(world, caller, call);
  if (byContact && rules.decidesBy === 'contact') return answered(work, 'already open', byContact.id);
  const own = byKey ?? (rules.comparesKeyOfContact && byContact?.key === request.key ? byContact : null);
  if (own?.id === call.id) return answered(work, 'created', own.id);
  const isSame = rules.repetitionGets === 'what its data say' && own?.data === request.data;
  if (own)
    return isSame || rules.repetitionGets === 'a replay'
      ? answered(work, 'replayed', own.id)
      : answered(work, 'conflict');
  return byContact ? answered(work, 'already open', byContact.id) : again(work);
}

/** Returns to the insert and discards what was found. */
function again({ rules, world, caller, call: { number, id, claims } }: Work): World {
  return withCaller(world, caller, {
    at: 'insert',
    number,
    id: rules.keepsId ? id : freeNumber(world, caller),
    claims,
  });
}

/** Whether an index refuses a row. Rows that no majority has stored yet count, too. */
export function isRefused({ keyIndex, contactIndex }: Rules, { rows }: World, row: Row): boolean {
  return rows.some(
    ({ id, key, claims }) =>
      id === row.id || (keyIndex && key === row.key) || (contactIndex && overlap(claims, row.claims)),
  );
}

function found(row: Row | undefined): Found | null {
  return row ? { id: row.id, key: row.key, data: row.data } : null;
}
