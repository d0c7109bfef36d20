import type { Design } from './lead-system.ts';
import type { PROMISES } from './promises.ts';
import { reserveKey } from './reserve-key.ts';
import type { SCENARIOS } from './scenarios.ts';

/** A plausible but flawed design, and the promise that it breaks. */
interface Flaw extends Design {
  readonly breaks: keyof typeof PROMISES | 'stuck';
  readonly in: keyof typeof SCENARIOS;
}

const RIVAL = 'one key twice and a rival, with failovers';
const OTHER_DATA = 'one key with other data, and a rival';
const NEW_REGIONS = 'two rivals who spell it in two ways, and a region that changes twice';
const CORRECTIONS = 'two leads of two contacts, and two who close, open and correct them to each other’s contact';
const TWO_MOVERS = 'two rivals, and two who close and open leads, with failovers';

/** By a description of the flaw. */
export const FLAWS: Readonly<Record<string, Flaw>> = {
  'no unique index on the key': { rules: { keyIndex: false }, breaks: 'one lead per key', in: RIVAL },
  'no unique index on the contact': { rules: { contactIndex: false }, breaks: 'one open lead per contact', in: RIVAL },
  'the contact decides before the key does': {
    rules: { decidesBy: 'contact' },
    breaks: 'an open lead in the way is somebody else’s, with the same contact',
    in: RIVAL,
  },
  'the key is looked for before the contact': {
    rules: { looks: 'key, then contact' },
    breaks: 'an open lead in the way is somebody else’s, with the same contact',
    in: RIVAL,
  },
  'so it is, and the lead with the contact is looked at for its key': {
    rules: { looks: 'key, then contact', knowsOwnByContact: true },
    breaks: 'whose key has a lead is not told of another one that is open',
    in: RIVAL,
  },
  'both are looked for at once, and the lead with the contact is looked at for its key': {
    rules: { looks: 'both at once', knowsOwnByContact: true },
    breaks: 'whose key has a lead is not told of another one that is open',
    in: RIVAL,
  },
  'the data are not compared': {
    rules: { comparesData: false },
    breaks: 'a lead is answered to its own request, key and data',
    in: OTHER_DATA,
  },
  'an insert is repeated with another id': {
    rules: { keepsId: false },
    breaks: 'a lead is answered as created by the call that wrote it, and as replayed by any other',
    in: RIVAL,
  },
  'an insert is answered before it is durable': {
    rules: { awaitsMajority: false },
    breaks: 'an acknowledged lead is in the store',
    in: RIVAL,
  },
  'what is not durable is read': {
    rules: { readsMajority: false },
    without: ['an open lead in the way is somebody else’s, with the same contact'],
    breaks: 'an acknowledged lead is in the store',
    in: RIVAL,
  },
  'a lead is opened in one write, and claims its contact in another': {
    rules: { reopeningClaims: false },
    breaks: 'one open lead per contact',
    in: RIVAL,
  },
  'a lead is opened with the claims of the contact that it had when it was read': {
    rules: { opensOnlyWhatItRead: false },
    breaks: 'one open lead per contact',
    in: CORRECTIONS,
  },
  'a contact is corrected in one write, and claimed in another': {
    rules: { correctionClaims: false },
    breaks: 'one open lead per contact',
    in: CORRECTIONS,
  },
  'a lead that is found in the way of a move is not compared with the one that is moved': {
    rules: { moverKnowsItself: false },
    breaks: 'no lead is in its own way',
    in: TWO_MOVERS,
  },
  'a new region holds at once, and what open leads claim by the one before is not held to': {
    rules: { holdsToFormerRegions: false },
    breaks: 'one open lead per contact, however it is spelled',
    in: NEW_REGIONS,
  },
  'a region that changes once more forgets what there was before': {
    rules: { remembersAllRegions: false },
    breaks: 'one open lead per contact, however it is spelled',
    in: NEW_REGIONS,
  },
  'a renewed lead claims by the new region alone, at once': {
    rules: { renewsInTwoSteps: false },
    breaks: 'one open lead per contact, however it is spelled',
    in: NEW_REGIONS,
  },
  'claims are made anew, whatever became of the lead since it was read': {
    rules: { renewsOnlyWhatItRead: false },
    breaks: 'a closed lead keeps no contact from anybody',
    in: NEW_REGIONS,
  },
  'the key is reserved first, and a reservation left behind is deleted': {
    protocol: reserveKey(true),
    rules: { keyIndex: false },
    without: [
      'an open lead in the way is somebody else’s, with the same contact',
      'whose key has a lead is not told of another one that is open',
    ],
    breaks: 'one lead per key',
    in: RIVAL,
  },
  'the key is reserved first, and a reservation left behind stays': {
    protocol: reserveKey(false),
    rules: { keyIndex: false },
    breaks: 'stuck',
    in: RIVAL,
  },
  'the key is reserved first, and a reservation is taken for a lead': {
    protocol: reserveKey(false),
    rules: { keyIndex: false },
    breaks: 'a conflict is with other data under the same key',
    in: OTHER_DATA,
  },
};
