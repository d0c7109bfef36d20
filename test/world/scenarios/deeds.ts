import type { LeadStage } from '../../../src/domain/lead.ts';
import { type EventOf, now } from '../history.ts';
import type { KnownKey, KnownStudio, Life } from '../life.ts';

// Actions that the CRM performs by RPC and operators perform at the command line; both are recorded in the same way.

/** The outcome: an answer; a refusal with its reason, which changed nothing; or unknown. */
export type Outcome<T> =
  | { readonly answer: T }
  | { readonly refused: string; readonly leadId: string | undefined }
  | { readonly unknown: string };

/** An actor, and its way of performing an action. */
export interface Doing<T> {
  readonly party: string;
  readonly doIt: () => Promise<Outcome<T>>;
}

/** An action on a key. */
type KeyDeed = Pick<EventOf<'keyDeed'>, 'studioId' | 'apiKeyId' | 'memberId' | 'deed'>;

/** Sets something to a value. */
export async function put(life: Life, what: string, value: string, { party, doIt }: Doing<unknown>): Promise<void> {
  const begin = now();
  const outcome = await doIt();
  if ('refused' in outcome) {
    const told = `${what} is not put to ${value}: ${outcome.refused}`;
    life.history.add({ kind: 'other', party, what: told, span: { begin, end: now() } });
  } else life.put(what, value, { party, begin, isDone: 'answer' in outcome });
}

/** A lead, and its new stage. */
interface Move {
  readonly studioId: string;
  readonly leadId: string;
  readonly stage: LeadStage;
}

export async function move(life: Life, move: Move, { party, doIt }: Doing<unknown>): Promise<void> {
  const begin = now();
  const outcome = await doIt();
  life.history.add({
    kind: 'move',
    party,
    ...move,
    outcome:
      'answer' in outcome
        ? { told: 'moved' }
        : 'refused' in outcome
          ? { told: 'refused', reason: outcome.refused, leadId: outcome.leadId }
          : { told: 'nothing' },
    span: { begin, end: 'unknown' in outcome ? Number.POSITIVE_INFINITY : now() },
  });
}

/** The secret of a key that was created or replaced. */
export interface IssuedKey {
  readonly apiKeyId: string;
  readonly secret: string;
}

export async function makeKey(
  life: Life,
  studio: KnownStudio,
  { memberId, ...may }: Pick<KnownKey, 'mayRead' | 'mayCreate'> & { readonly memberId: string },
  { party, doIt }: Doing<IssuedKey>,
): Promise<void> {
  const begin = now();
  const outcome = await doIt();
  // A key whose response was lost stays unknown.
  if (!('answer' in outcome)) return;
  life.knowKey(studio, { ...outcome.answer, ...may, mayDie: false }, memberId, { party, begin });
}

/** The secret of a key is replaced: the former one is invalid as soon as that is acknowledged. */
export async function replaceKey(
  life: Life,
  { id: studioId }: KnownStudio,
  key: KnownKey,
  memberId: string,
  doing: Doing<IssuedKey>,
): Promise<void> {
  const { apiKeyId } = key;
  await endSecret(life, key, { studioId, apiKeyId, memberId, deed: 'replaced' }, doing, (outcome, done) => {
    life.put(`issuer of ${apiKeyId}`, memberId, done);
    if (!('answer' in outcome)) return;
    key.secret = outcome.answer.secret;
    life.knowSecret(key, done);
    // The outcome of an earlier call is unknown: it may still be carried out, and invalidate this secret, too.
    if (key.mayDie) dies(life, key, { ...done, isDone: false });
  });
}

/** A key is revoked. The first key of a studio stays. */
export async function revokeKey(
  life: Life,
  { id: studioId, keys }: KnownStudio,
  key: KnownKey,
  memberId: string,
  doing: Doing<unknown>,
): Promise<void> {
  if (keys.indexOf(key) === 0) return;
  const { apiKeyId } = key;
  await endSecret(life, key, { studioId, apiKeyId, memberId, deed: 'revoked' }, doing);
}

/** Performs an action that invalidates the secret of a key, and records its other effects. */
async function endSecret<T>(
  life: Life,
  key: KnownKey,
  deed: KeyDeed,
  { party, doIt }: Doing<T>,
  note: (outcome: Outcome<T>, done: Done) => void = () => {},
): Promise<void> {
  await life.inTurn(`key ${key.apiKeyId}`, async () => {
    const begin = now();
    const outcome = await doIt();
    if ('refused' in outcome) return;
    const done = { party, begin, isDone: 'answer' in outcome };
    noteKeyDeed(life, deed, done);
    dies(life, key, done);
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
function dies(life: Life, key: KnownKey, done: Done): void {
  life.put(`secret ${key.secret}`, 'dead', done);
  key.mayDie ||= !done.isDone;
}

function noteKeyDeed(life: Life, deed: KeyDeed, { party, begin, isDone }: Done): void {
  const span = { begin, end: isDone ? now() : Number.POSITIVE_INFINITY };
  life.history.add({ kind: 'keyDeed', party, ...deed, isDone, span });
}
