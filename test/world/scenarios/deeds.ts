import type { LeadStage } from '../../../src/domain/lead.ts';
import { type EventOf, now } from '../history.ts';
import type { KnownKey, KnownStudio, Life } from '../life.ts';

// What the CRM does by RPC, operators do at the command line: whoever does it, everybody knows of it in the same way.

/** What came of it: an answer; why it was refused, and changed nothing; or nothing is known. */
export type Outcome<T> =
  | { readonly answer: T }
  | { readonly refused: string; readonly leadId: string | undefined }
  | { readonly unknown: string };

/** Somebody who does things, and one way of doing one of them. */
export interface Doing<T> {
  readonly party: string;
  readonly doIt: () => Promise<Outcome<T>>;
}

/** Something that can be done to a key. */
type KeyDeed = Pick<EventOf<'keyDeed'>, 'studioId' | 'apiKeyId' | 'memberId' | 'deed'>;

/** Has something be what it is put to. */
export async function put(life: Life, what: string, value: string, { party, doIt }: Doing<unknown>): Promise<void> {
  const begin = now();
  const outcome = await doIt();
  if ('refused' in outcome) {
    const told = `${what} is not put to ${value}: ${outcome.refused}`;
    life.history.add({ kind: 'other', party, what: told, span: { begin, end: now() } });
  } else life.put(what, value, { party, begin, isDone: 'answer' in outcome });
}

/** A lead, and where it is to go. */
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

/** What opens a key that was just made, or made anew. */
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
  // Of a key that nobody was told of nobody knows.
  if (!('answer' in outcome)) return;
  life.knowKey(studio, { ...outcome.answer, ...may, mayDie: false }, memberId, { party, begin });
}

/** A key gets another secret: the former one is dead as soon as that is told. */
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
    // What became of an earlier call is not known: it may still come, and end this secret, too.
    if (key.mayDie) dies(life, key, { ...done, isDone: false });
  });
}

/** A key is revoked. The first of a studio stays. */
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

/** Has something done after which what opens a key does so no more; and notes what else comes of it. */
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

/** Who did something, since when, and whether they were told that it is done. */
interface Done {
  readonly party: string;
  readonly begin: number;
  readonly isDone: boolean;
}

/** Notes that what opens a key does so no more, or perhaps not. */
function dies(life: Life, key: KnownKey, done: Done): void {
  life.put(`secret ${key.secret}`, 'dead', done);
  key.mayDie ||= !done.isDone;
}

function noteKeyDeed(life: Life, deed: KeyDeed, { party, begin, isDone }: Done): void {
  const span = { begin, end: isDone ? now() : Number.POSITIVE_INFINITY };
  life.history.add({ kind: 'keyDeed', party, ...deed, isDone, span });
}
