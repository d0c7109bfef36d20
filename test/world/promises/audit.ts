import { AuditAction, type AuditEvent } from '../../../proto/gen/leadintake/v1/audit_pb.ts';
import type { CoreClients } from '../../support/core-clients.ts';
import type { EventOf } from '../history.ts';
import type { FinalLead } from '../last-look.ts';
import type { KnownStudio, Life } from '../life.ts';

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
export async function brokenOfAudit(life: Life, leads: ReadonlyMap<string, readonly FinalLead[]>): Promise<string[]> {
  const { audit } = life.crm[0] as CoreClients;
  const broken: string[] = [];
  const moves = Map.groupBy(life.history.of('move'), ({ leadId }) => leadId);
  for (const studio of life.studios) {
    const { events } = await audit.listAuditEvents({ studioId: studio.id });
    broken.push(...brokenOfKeyDeeds(life, studio, events), ...brokenOfStatus(life, studio, events));
    for (const lead of leads.get(studio.id) ?? []) {
      const ofLead = moves.get(lead.id) ?? [];
      if (ofLead.length === 0) continue;
      const { events } = await audit.listAuditEvents({ studioId: studio.id, leadId: lead.id });
      broken.push(...brokenOfMoves(lead, ofLead, events));
    }
  }
  return broken;
}

function brokenOfMoves(
  lead: FinalLead,
  moves: readonly EventOf<'move'>[],
  newestFirst: readonly AuditEvent[],
): string[] {
  const events = newestFirst.toReversed();
  const broken = gapsOf(events, 'new');
  const to = (stage: string) => events.filter((event) => event.to === stage).length;
  const asked = Map.groupBy(moves, ({ stage }) => stage);
  for (const [stage, ofStage] of asked) {
    // A lead begins as `new`: a move to `new` may have changed nothing.
    if (stage !== 'new' && to(stage) === 0 && ofStage.some(({ outcome }) => outcome.told === 'moved'))
      broken.push(`nothing tells of a move to ${stage}`);
    const possible = ofStage.filter(({ outcome }) => outcome.told !== 'refused').length;
    if (to(stage) > possible) broken.push(`${to(stage)} events tell of ${possible} moves to ${stage}`);
  }
  const last = events.at(-1)?.to ?? 'new';
  // A move with an unknown outcome may have taken effect after the lead was read.
  const isLate = moves.some(({ stage, outcome }) => outcome.told === 'nothing' && stage === last);
  if (last !== lead.stage && !isLate) broken.push(`the last event leads to ${last}, and it is ${lead.stage}`);
  const strange = events.find(({ to: stage = '' }) => !asked.has(stage as FinalLead['stage']));
  if (strange) broken.push(`nobody has moved it to ${strange.to}`);
  return broken.map((what) => `what was done to ${lead.id}: ${what}\n${storyOf(events)}`);
}

function brokenOfStatus({ history }: Life, { id }: KnownStudio, all: readonly AuditEvent[]): string[] {
  const events = all.filter(({ action }) => action === AuditAction.STUDIO_STATUS_CHANGED).toReversed();
  const puts = history.of('put').filter(({ what }) => what === `status of ${id}`);
  const broken = gapsOf(events, undefined);
  for (const { value } of puts.filter(({ isDone }) => isDone)) {
    if (!events.some(({ to }) => to === value)) broken.push(`nothing tells that it became ${value}`);
  }
  const isLate = puts.some(({ isDone, value }) => !isDone && value === events.at(-1)?.to);
  const last = puts.findLast(({ isDone }) => isDone)?.value;
  if (events.at(-1)?.to !== last && !isLate)
    broken.push(`the last event leads to ${events.at(-1)?.to}, and it is ${last}`);
  return broken.map((what) => `the status of ${id}: ${what}\n${storyOf(events)}`);
}

function brokenOfKeyDeeds({ history }: Life, { id: studioId }: KnownStudio, events: readonly AuditEvent[]): string[] {
  const deeds = history.of('keyDeed').filter((each) => each.studioId === studioId);
  const byDeed = Map.groupBy(deeds, ({ apiKeyId, memberId, deed }) => `${deed} ${apiKeyId} ${memberId}`);
  const ofKeys = events.filter(({ apiKeyId }) => apiKeyId !== undefined).toReversed();
  const outOfOrder = [...Map.groupBy(ofKeys, ({ apiKeyId }) => apiKeyId)].flatMap(([apiKeyId, ofKey]) => {
    const ranks = ofKey.map(({ action }) => ORDER.indexOf(action));
    const isRight = ranks.every((rank, index) => index === 0 || rank >= (ranks[index - 1] as number));
    return isRight
      ? []
      : [`what was done to the key ${apiKeyId} is told as ${ranks.map((rank) => Object.keys(ACTIONS)[rank])}`];
  });
  const wrong = [...byDeed.values()].flatMap((same) => {
    const [{ deed, apiKeyId, memberId }] = same as [EventOf<'keyDeed'>];
    const found = events.filter(
      (event) => event.action === ACTIONS[deed] && event.apiKeyId === apiKeyId && event.memberId === memberId,
    ).length;
    const done = same.filter(({ isDone }) => isDone).length;
    // Revoking a revoked key logs no second event.
    const fewest = deed === 'revoked' ? Math.min(done, 1) - revokedByOthers(events, apiKeyId, memberId) : done;
    return found >= fewest && found <= same.length
      ? []
      : [`${memberId} has ${deed} the key ${apiKeyId} ${done} to ${same.length} times, and ${found} events tell of it`];
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

const storyOf = (events: readonly AuditEvent[]): string =>
  events.map(({ from, to, time }) => `  ${time?.seconds}.${(time?.nanos ?? 0) / 1_000_000} ${from} → ${to}`).join('\n');
