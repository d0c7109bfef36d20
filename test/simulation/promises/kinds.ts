import { type Lead, type LeadChange, LeadChangeKind } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { when } from '../history.ts';
import type { KeptConsumer } from '../scenarios/named-consumers.ts';
import { toContact, toStage } from '../scenarios/operations.ts';
import type { Simulation } from '../simulation.ts';

/** The parts of a lead that are known at a revision, after the creation of a consumer. */
interface Known {
  readonly revision: bigint;
  readonly stage?: string;
  readonly person?: string;
  readonly enquiries?: string;
  readonly erased?: string;
}

/** Each kind of change, and the part of a lead in which it shows. */
const KINDS = [
  [LeadChangeKind.STAGE_CHANGED, 'stage'],
  [LeadChangeKind.UPDATED, 'person'],
  [LeadChangeKind.ENQUIRED, 'enquiries'],
  [LeadChangeKind.ERASED, 'erased'],
] as const;

const findName = (kind: LeadChangeKind) => Object.entries(LeadChangeKind).find(([, each]) => each === kind)?.[0];

const describePerson = (displayName: string, contact: { readonly value: string }) => `${displayName} ${contact.value}`;

const toKnown = (lead: Lead, revision: bigint): Known => ({
  revision,
  stage: toStage(lead),
  ...(!lead.eraseTime && { person: describePerson(lead.displayName, toContact(lead)) }),
  erased: String(lead.eraseTime !== undefined),
});

/**
 * Requires that a consumer gets each kind of change that certainly happened to a lead of its studios since the consumer was
 * created, and nothing of other studios. A change is certain if two known states differ. The first delivery that was taken at
 * the revision of the later state, or at a higher one, must have the kind of the change.
 */
export function kindViolations(sim: Simulation, { name, studioIds, createdMs, taken }: KeptConsumer): string[] {
  const isOwn = (studioId: string) => studioIds.length === 0 || studioIds.includes(studioId);
  const known = new Map<string, Known[]>();
  const note = (leadId: string, ...states: Known[]) => known.set(leadId, [...(known.get(leadId) ?? []), ...states]);
  const begun = new Map<string, number>();
  for (const { span, operation } of sim.history.of('request')) {
    if (operation.name !== 'create') continue;
    const { idempotencyKey } = operation.lead;
    begun.set(idempotencyKey, Math.min(span.begin, begun.get(idempotencyKey) ?? span.begin));
  }
  const created = new Map<string, string>();
  for (const { studioId, operation, answer, span } of sim.history.of('request')) {
    if (operation.name !== 'create' || answer?.status !== 201 || !isOwn(studioId)) continue;
    const { idempotencyKey, displayName, contact } = operation.lead;
    const { id } = JSON.parse(answer.text).lead;
    if (created.has(id) || (begun.get(idempotencyKey) ?? 0) < createdMs) continue;
    created.set(id, when(span));
    note(id, {
      revision: -1n,
      stage: 'new',
      person: describePerson(displayName, contact),
      enquiries: '',
      erased: 'false',
    });
  }
  for (const { studioId, leadId, outcome, span } of sim.history.of('change')) {
    // A command prints no revision.
    if (!('answer' in outcome) || !outcome.answer || !isOwn(studioId) || span.begin < createdMs) continue;
    const { lead, revision } = outcome.answer as { readonly lead?: Lead; readonly revision: bigint };
    if (lead) note(leadId, toKnown(lead, revision));
  }
  for (const [leadId, changes] of taken)
    note(
      leadId,
      ...changes.map(({ lead, revision }) => ({
        ...toKnown(lead as Lead, revision),
        enquiries: `${lead?.enquiries.map(({ id }) => id)}`,
      })),
    );

  const findTaken = (leadId: string, revision: bigint) => taken.get(leadId)?.find((each) => each.revision >= revision);
  const lacks = (leadId: string, kind: LeadChangeKind, why: string, change: LeadChange | undefined) => {
    const kinds = change?.kinds.map((each) => each.kind) ?? [];
    if (kinds.includes(kind)) return [];
    return `consumer "${name}" is told ${kinds.map(findName)} of ${leadId} at ${change?.revision}, but not ${findName(kind)}: ${why}`;
  };
  return [
    ...[...taken].flatMap(([leadId, [first]]) =>
      isOwn(first?.lead?.studioId ?? '') ? [] : [`consumer "${name}" is sent ${leadId} of ${first?.lead?.studioId}`],
    ),
    ...[...created].flatMap(([leadId, at]) => lacks(leadId, LeadChangeKind.CREATED, at, findTaken(leadId, 0n))),
    ...[...known].flatMap(([leadId, states]) => {
      const ordered = states.toSorted((a, b) => Number(a.revision - b.revision));
      return KINDS.flatMap(([kind, part]) => {
        const values = ordered.flatMap(({ revision, [part]: value }) =>
          value === undefined ? [] : { revision, value },
        );
        return values.slice(1).flatMap(({ revision, value }, index) => {
          const before = values[index]?.value;
          if (value === before) return [];
          return lacks(
            leadId,
            kind,
            `"${before}" became "${value}" by revision ${revision}`,
            findTaken(leadId, revision),
          );
        });
      });
    }),
  ];
}
