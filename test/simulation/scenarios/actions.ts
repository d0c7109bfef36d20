import type { LeadStage } from '../../../src/domain/lead.ts';
import { type EventOf, now } from '../history.ts';
import type { KnownKey, KnownStudio, Simulation } from '../simulation.ts';

// Actions that the CRM performs by RPC and operators perform at the command line; both are recorded in the same way.

/** The outcome: an answer; a refusal with its reason, which changed nothing; or unknown. */
export type Outcome<T> =
  | { readonly answer: T }
  | { readonly refused: string; readonly leadId: string | undefined }
  | { readonly unknown: string };

/** An actor, and its way of performing an action. */
export interface Attempt<T> {
  readonly party: string;
  readonly perform: () => Promise<Outcome<T>>;
}

/** An action on a key. */
type KeyAction = Pick<EventOf<'keyAction'>, 'studioId' | 'apiKeyId' | 'memberId' | 'action'>;

/** Sets something to a value. */
export async function put(
  sim: Simulation,
  what: string,
  value: string,
  { party, perform }: Attempt<unknown>,
): Promise<void> {
  const begin = now();
  const outcome = await perform();
  if ('refused' in outcome) {
    sim.history.note(party, `${what} is not put to ${value}: ${outcome.refused}`, begin);
  } else sim.put(what, value, { party, begin, isDone: 'answer' in outcome });
}

/** A lead, and its new stage. */
interface Move {
  readonly studioId: string;
  readonly leadId: string;
  readonly stage: LeadStage;
}

export async function move(sim: Simulation, move: Move, { party, perform }: Attempt<unknown>): Promise<void> {
  const begin = now();
  const outcome = await perform();
  sim.history.add({
    kind: 'move',
    party,
    ...move,
    outcome:
      'answer' in outcome
        ? { result: 'moved' }
        : 'refused' in outcome
          ? { result: 'refused', reason: outcome.refused, leadId: outcome.leadId }
          : { result: 'unknown' },
    span: { begin, end: 'unknown' in outcome ? Number.POSITIVE_INFINITY : now() },
  });
}

/** The secret of a key that was created or replaced. */
export interface IssuedKey {
  readonly apiKeyId: string;
  readonly secret: string;
}

export async function makeKey(
  sim: Simulation,
  studio: KnownStudio,
  { memberId, ...may }: Pick<KnownKey, 'mayRead' | 'mayCreate'> & { readonly memberId: string },
  { party, perform }: Attempt<IssuedKey>,
): Promise<void> {
  const begin = now();
  const outcome = await perform();
  // A key whose response was lost stays unknown.
  if (!('answer' in outcome)) return;
  sim.addKey(studio, { ...outcome.answer, ...may, mayBecomeInvalid: false }, memberId, { party, begin });
}

/** The secret of a key is replaced: the former one is invalid as soon as that is acknowledged. */
export async function replaceKey(
  sim: Simulation,
  { id: studioId }: KnownStudio,
  key: KnownKey,
  memberId: string,
  attempt: Attempt<IssuedKey>,
): Promise<void> {
  const { apiKeyId } = key;
  await endSecret(sim, key, { studioId, apiKeyId, memberId, action: 'replaced' }, attempt, (outcome, done) => {
    sim.put(`issuer of ${apiKeyId}`, memberId, done);
    if (!('answer' in outcome)) return;
    key.secret = outcome.answer.secret;
    sim.addSecret(key, done);
    // The outcome of an earlier call is unknown: it may still be carried out, and invalidate this secret, too.
    if (key.mayBecomeInvalid) recordInvalid(sim, key, { ...done, isDone: false });
  });
}

/** A key is revoked. The first key of a studio stays. */
export async function revokeKey(
  sim: Simulation,
  { id: studioId, keys }: KnownStudio,
  key: KnownKey,
  memberId: string,
  attempt: Attempt<unknown>,
): Promise<void> {
  if (keys.indexOf(key) === 0) return;
  const { apiKeyId } = key;
  await endSecret(sim, key, { studioId, apiKeyId, memberId, action: 'revoked' }, attempt);
}

/** Performs an action that invalidates the secret of a key, and records its other effects. */
async function endSecret<T>(
  sim: Simulation,
  key: KnownKey,
  action: KeyAction,
  { party, perform }: Attempt<T>,
  note: (outcome: Outcome<T>, done: Done) => void = () => {},
): Promise<void> {
  await sim.inTurn(`key ${key.apiKeyId}`, async () => {
    const begin = now();
    const outcome = await perform();
    if ('refused' in outcome) return;
    const done = { party, begin, isDone: 'answer' in outcome };
    recordKeyAction(sim, action, done);
    recordInvalid(sim, key, done);
    note(outcome, done);
  });
}

/** The actor, the time since when the action may have happened, and whether it was acknowledged. */
interface Done {
  readonly party: string;
  readonly begin: number;
  readonly isDone: boolean;
}

/** Records that the secret of a key is invalid, or may be. */
function recordInvalid(sim: Simulation, key: KnownKey, done: Done): void {
  sim.put(`secret ${key.secret}`, 'invalid', done);
  key.mayBecomeInvalid ||= !done.isDone;
}

function recordKeyAction(sim: Simulation, action: KeyAction, { party, begin, isDone }: Done): void {
  const span = { begin, end: isDone ? now() : Number.POSITIVE_INFINITY };
  sim.history.add({ kind: 'keyAction', party, ...action, isDone, span });
}
