import { AuditAction, type AuditEvent } from '../../../proto/gen/leadintake/v1/audit_pb.ts';
import type { FinalLead } from '../final-state.ts';
import type { EventOf } from '../history.ts';
import type { KnownStudio, Simulation } from '../simulation.ts';

const ACTIONS = {
  created: AuditAction.API_KEY_CREATED,
  replaced: AuditAction.API_KEY_REPLACED,
  revoked: AuditAction.API_KEY_REVOKED,
} as const;

/** The order of events of one key: it is created first, and revoked last. */
const ORDER: readonly AuditAction[] = [ACTIONS.created, ACTIONS.replaced, ACTIONS.revoked];

/**
 * Compares the audit log with the history: each confirmed action is logged with the member who did it, no action is logged
 * twice, and the changes of a record lead from its first state to its last without a gap.
 *
 * @param leads the final leads, by studio
 */
export async function auditViolations(
  sim: Simulation,
  leads: ReadonlyMap<string, readonly FinalLead[]>,
): Promise<string[]> {
  const { audit } = sim.crmAt(0);
  const violations: string[] = [];
  const moves = Map.groupBy(sim.history.of('move'), ({ leadId }) => leadId);
  for (const studio of sim.studios) {
    const { events } = await audit.listAuditEvents({ studioId: studio.id });
    violations.push(...keyActionViolations(sim, studio, events), ...statusViolations(sim, studio, events));
    for (const lead of leads.get(studio.id) ?? []) {
      const ofLead = moves.get(lead.id) ?? [];
      if (ofLead.length === 0) continue;
      const { events } = await audit.listAuditEvents({ studioId: studio.id, leadId: lead.id });
      violations.push(...moveViolations(lead, ofLead, events));
    }
  }
  return violations;
}

function moveViolations(
  lead: FinalLead,
  moves: readonly EventOf<'move'>[],
  newestFirst: readonly AuditEvent[],
): string[] {
  const events = newestFirst.toReversed();
  const violations = gapsOf(events, 'new');
  const to = (stage: string) => events.filter((event) => event.to === stage).length;
  const movesByStage = Map.groupBy(moves, ({ stage }) => stage);
  for (const [stage, ofStage] of movesByStage) {
    // A lead begins as `new`: a move to `new` may have changed nothing.
    if (stage !== 'new' && to(stage) === 0 && ofStage.some(({ outcome }) => outcome.result === 'moved'))
      violations.push(`no event records a move to ${stage}`);
    const possible = ofStage.filter(({ outcome }) => outcome.result !== 'refused').length;
    if (to(stage) > possible) violations.push(`${to(stage)} events record ${possible} moves to ${stage}`);
  }
  const last = events.at(-1)?.to ?? 'new';
  // A move with an unknown outcome may have taken effect after the lead was read.
  const isLate = moves.some(({ stage, outcome }) => outcome.result === 'unknown' && stage === last);
  if (last !== lead.stage && !isLate)
    violations.push(`the last event leads to ${last}, and its stage is ${lead.stage}`);
  const unexpected = events.find(({ to: stage = '' }) => !movesByStage.has(stage as FinalLead['stage']));
  if (unexpected) violations.push(`no party has moved it to ${unexpected.to}`);
  return violations.map((what) => `the events of ${lead.id}: ${what}\n${traceOf(events)}`);
}

function statusViolations({ history }: Simulation, { id }: KnownStudio, all: readonly AuditEvent[]): string[] {
  const events = all.filter(({ action }) => action === AuditAction.STUDIO_STATUS_CHANGED).toReversed();
  const puts = history.of('put').filter(({ what }) => what === `status of ${id}`);
  const violations = gapsOf(events, undefined);
  for (const { value } of puts.filter(({ isDone }) => isDone)) {
    if (!events.some(({ to }) => to === value)) violations.push(`no event records the status ${value}`);
  }
  const isLate = puts.some(({ isDone, value }) => !isDone && value === events.at(-1)?.to);
  const last = puts.findLast(({ isDone }) => isDone)?.value;
  if (events.at(-1)?.to !== last && !isLate)
    violations.push(`the last event leads to ${events.at(-1)?.to}, and it is ${last}`);
  return violations.map((what) => `the status of ${id}: ${what}\n${traceOf(events)}`);
}

function keyActionViolations(
  { history }: Simulation,
  { id: studioId }: KnownStudio,
  events: readonly AuditEvent[],
): string[] {
  const actions = history.of('keyAction').filter((each) => each.studioId === studioId);
  const byAction = Map.groupBy(actions, ({ apiKeyId, memberId, action }) => `${action} ${apiKeyId} ${memberId}`);
  const ofKeys = events.filter(({ apiKeyId }) => apiKeyId !== undefined).toReversed();
  const outOfOrder = [...Map.groupBy(ofKeys, ({ apiKeyId }) => apiKeyId)].flatMap(([apiKeyId, ofKey]) => {
    const ranks = ofKey.map(({ action }) => ORDER.indexOf(action));
    const isRight = ranks.every((rank, index) => index === 0 || rank >= (ranks[index - 1] as number));
    return isRight
      ? []
      : [`the events of the key ${apiKeyId} are in the order ${ranks.map((rank) => Object.keys(ACTIONS)[rank])}`];
  });
  const wrong = [...byAction.values()].flatMap((same) => {
    const [{ action, apiKeyId, memberId }] = same as [EventOf<'keyAction'>];
    const found = events.filter(
      (event) => event.action === ACTIONS[action] && event.apiKeyId === apiKeyId && event.memberId === memberId,
    ).length;
    const done = same.filter(({ isDone }) => isDone).length;
    // Revoking a revoked key logs no second event.
    const fewest = action === 'revoked' ? Math.min(done, 1) - revokedByOthers(events, apiKeyId, memberId) : done;
    return found >= fewest && found <= same.length
      ? []
      : [
          `${memberId} has ${action} the key ${apiKeyId} ${done} to ${same.length} times, and ${found} events record it`,
        ];
  });
  return [...outOfOrder, ...wrong];
}

function revokedByOthers(events: readonly AuditEvent[], apiKeyId: string, memberId: string): number {
  return events.filter(
    (event) =>
      event.action === AuditAction.API_KEY_REVOKED && event.apiKeyId === apiKeyId && event.memberId !== memberId,
  ).length;
}

/** Events whose `from` is not the `to` of the previous event. */
function gapsOf(events: readonly AuditEvent[], first: string | undefined): string[] {
  return events.flatMap(({ from, to }, index) => {
    const before = index === 0 ? first : events[index - 1]?.to;
    return from === before ? [] : [`event ${index + 1} leads from ${from} to ${to}, where it was ${before}`];
  });
}

const traceOf = (events: readonly AuditEvent[]): string =>
  events.map(({ from, to, time }) => `  ${time?.seconds}.${(time?.nanos ?? 0) / 1_000_000} ${from} → ${to}`).join('\n');
