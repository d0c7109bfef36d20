import { AuditAction, type AuditEvent } from '../../../proto/gen/leadintake/v1/audit_pb.ts';
import type { FinalLead } from '../final-state.ts';
import type { EventOf } from '../history.ts';
import type { KnownStudio, Simulation } from '../simulation.ts';

/** The events of a key, in the order in which they can happen. */
const KEY_EVENTS = {
  created: AuditAction.API_KEY_CREATED,
  replaced: AuditAction.API_KEY_REPLACED,
  revoked: AuditAction.API_KEY_REVOKED,
} as const;

/** Registers of a studio whose changes are in the log, with their first values. */
const STUDIO_EVENTS = {
  status: { action: AuditAction.STUDIO_STATUS_CHANGED, first: undefined },
  region: { action: AuditAction.STUDIO_REGION_CHANGED, first: undefined },
  quota: { action: AuditAction.STUDIO_QUOTA_CHANGED, first: undefined },
  keeping: { action: AuditAction.STUDIO_ENQUIRIES_CHANGED, first: 'kept' },
  retention: { action: AuditAction.STUDIO_RETENTION_CHANGED, first: 'none' },
} as const;

/**
 * Compares the audit log with the history. Each confirmed action must be logged once, with the member who did it. The logged
 * changes of a record must lead from its first state to its last without a gap.
 *
 * @param leads the final leads, by studio
 */
export async function auditViolations(
  sim: Simulation,
  leads: ReadonlyMap<string, readonly FinalLead[]>,
): Promise<string[]> {
  const { audit } = sim.crmAt(0);
  const violations: string[] = [];
  const changes = Map.groupBy(sim.history.of('change'), ({ leadId }) => leadId);
  for (const studio of sim.studios) {
    const { events } = await audit.listAuditEvents({ studioId: studio.id });
    violations.push(...checkKeys(sim, studio, events), ...checkStudio(sim, studio, events));
    for (const { id, stage } of leads.get(studio.id) ?? []) {
      const ofLead = changes.get(id)?.filter(({ outcome }) => !('refused' in outcome)) ?? [];
      if (ofLead.length === 0) continue;
      const { events } = await audit.listAuditEvents({ studioId: studio.id, leadId: id });
      const writes = ofLead.flatMap(({ stage, outcome }) =>
        stage ? [{ value: stage, isDone: 'answer' in outcome }] : [],
      );
      const moves = events.filter(({ action }) => action === AuditAction.LEAD_STAGE_CHANGED);
      const isCorrected = events.some(({ action }) => action === AuditAction.LEAD_UPDATED);
      violations.push(...compareEvents(`the stage of ${id}`, moves, writes, { first: 'new', last: stage }));
      if (ofLead.some(({ contact, outcome }) => contact && 'answer' in outcome) && !isCorrected)
        violations.push(`no event records a correction of ${id}`);
    }
  }
  return violations;
}

/** A write of a value; if `isDone` is false, it may not have happened. */
interface Write {
  readonly value: string;
  readonly isDone: boolean;
}

/** Compares events with the writes of a register, given its first and its last value. */
function compareEvents(
  what: string,
  newestFirst: readonly AuditEvent[],
  writes: readonly Write[],
  { first, last }: { readonly first: string | undefined; readonly last: string | undefined },
): string[] {
  const steps = newestFirst.toReversed().map(({ from = 'none', to = 'none' }) => ({ from, to }));
  const violations = steps.flatMap(({ from, to }, index) => {
    const before = index === 0 ? (first ?? from) : steps[index - 1]?.to;
    return from === before ? [] : [`event ${index + 1} is a change from ${from} to ${to}, but the value was ${before}`];
  });
  for (const [value, same] of Map.groupBy(
    [...writes, ...steps.map(({ to }) => ({ value: to }))],
    (each) => each.value,
  )) {
    const recorded = steps.filter(({ to }) => to === value).length;
    const possible = same.length - recorded;
    if (recorded > possible) violations.push(`${recorded} events record ${possible} writes of ${value}`);
    // The register may have had the value already.
    const isDone = writes.some((write) => write.isDone && write.value === value);
    if (isDone && recorded === 0 && value !== (first ?? steps[0]?.from)) violations.push(`no event records ${value}`);
  }
  const end = steps.at(-1)?.to ?? first;
  // A write with an unknown outcome may have taken effect after the value was read.
  const isLate = writes.some(({ isDone, value }) => !isDone && value === end);
  if (last !== undefined && end !== last && !isLate)
    violations.push(`the last event is a change to ${end}, but the value is ${last}`);
  const shown = steps.map(({ from, to }) => `  ${from} → ${to}`).join('\n');
  return violations.map((violation) => `the events of ${what}: ${violation}\n${shown}`);
}

function checkStudio(sim: Simulation, { id, memberIds }: KnownStudio, all: readonly AuditEvent[]): string[] {
  const fields = Object.entries(STUDIO_EVENTS).flatMap(([field, { action, first }]) => {
    const what = `${field} of ${id}`;
    const events = all.filter((event) => event.action === action);
    return compareEvents(what, events, sim.listPuts(what), { first, last: undefined });
  });
  const members = memberIds.flatMap((member) => {
    const what = `role of ${member} in ${id}`;
    const roleIn = (text: string | undefined) => text?.replace(`${member} `, '') ?? 'gone';
    const events = all
      .filter(({ action }) => action === AuditAction.STUDIO_MEMBER_CHANGED)
      .filter(({ from, to }) => [from, to].some((text) => text?.startsWith(`${member} `)))
      .map((event) => ({ ...event, from: roleIn(event.from), to: roleIn(event.to) }));
    return compareEvents(what, events, sim.listPuts(what), { first: 'gone', last: undefined });
  });
  return [...fields, ...members];
}

function checkKeys({ history }: Simulation, { id: studioId }: KnownStudio, all: readonly AuditEvent[]): string[] {
  const events = all.filter(({ apiKeyId }) => apiKeyId !== undefined).toReversed();
  const outOfOrder = [...Map.groupBy(events, ({ apiKeyId }) => apiKeyId)].flatMap(([apiKeyId, ofKey]) => {
    const ranks = ofKey.map(({ action }) => Object.values(KEY_EVENTS).indexOf(action as typeof KEY_EVENTS.created));
    return `${ranks.toSorted()}` === `${ranks}` ? [] : [`the events of the key ${apiKeyId} are in the order ${ranks}`];
  });
  const actions = history.of('keyAction').filter((each) => each.studioId === studioId);
  const byAction = Map.groupBy(actions, ({ apiKeyId, memberId, action }) => `${action} ${apiKeyId} ${memberId}`);
  const wrong = [...byAction.values()].flatMap((same) => {
    const [{ action, apiKeyId, memberId }] = same as [EventOf<'keyAction'>];
    const ofAction = events.filter((event) => event.action === KEY_EVENTS[action] && event.apiKeyId === apiKeyId);
    const found = ofAction.filter((event) => event.memberId === memberId).length;
    const done = same.filter(({ isDone }) => isDone).length;
    // Revoking a revoked key logs no second event.
    const fewest = action === 'revoked' ? Math.min(done, 1) - (ofAction.length - found) : done;
    if (found >= fewest && found <= same.length) return [];
    return [`${memberId} has ${action} the key ${apiKeyId} ${done} to ${same.length} times: ${found} events`];
  });
  return [...outOfOrder, ...wrong];
}
