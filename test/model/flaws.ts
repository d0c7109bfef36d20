import type { PROMISES } from './invariants.ts';
import type { Design } from './lead-system.ts';
import type { SCENARIOS } from './scenarios.ts';

/** A plausible but flawed design, and the promise that it breaks. */
interface Flaw extends Design {
  readonly breaks: keyof typeof PROMISES;
  readonly in: keyof typeof SCENARIOS;
}

const RIVAL = 'one key twice and a rival, with failovers';
const OTHER_DATA = 'one key with other data, and a rival';
const NEW_REGIONS = 'two rivals, and a region that changes twice';
const CORRECTIONS = 'two leads with different contacts, and two movers that correct them to each other’s contact';
const TWO_MOVERS = 'two rivals and two movers, with failovers';

/** By a description of the flaw. */
export const FLAWS: Readonly<Record<string, Flaw>> = {
  'no unique index on the key': { rules: { keyIndex: false }, breaks: 'one lead per key', in: RIVAL },
  'no unique index on the contact': { rules: { contactIndex: false }, breaks: 'one open lead per contact', in: RIVAL },
  'the contact takes precedence over the key': {
    rules: { decidesBy: 'contact' },
    breaks: 'a conflicting open lead has another key and the same contact',
    in: RIVAL,
  },
  'the key is looked up before the contact': {
    rules: { looks: 'key, then contact' },
    breaks: 'a conflicting open lead has another key and the same contact',
    in: RIVAL,
  },
  'the key is looked up first, and the key of the lead with the contact is compared': {
    rules: { looks: 'key, then contact', comparesKeyOfContact: true },
    breaks: 'a key with a lead never gets a conflict with another open lead',
    in: RIVAL,
  },
  'both are looked up at once, and the key of the lead with the contact is compared': {
    rules: { looks: 'both at once', comparesKeyOfContact: true },
    breaks: 'a key with a lead never gets a conflict with another open lead',
    in: RIVAL,
  },
  'the data are not compared': {
    rules: { repetitionGets: 'a replay' },
    breaks: 'a returned lead has the key and the data of the request',
    in: OTHER_DATA,
  },
  'every repetition is a conflict': {
    rules: { repetitionGets: 'a conflict' },
    breaks: 'a conflict means other data under the same key',
    in: RIVAL,
  },
  'an insert is repeated with another id': {
    rules: { keepsId: false },
    breaks: 'a lead is returned as created by the call that wrote it, and as replayed by all others',
    in: RIVAL,
  },
  'an insert is acknowledged before it is durable': {
    rules: { awaitsMajority: false },
    breaks: 'an acknowledged lead is in the store',
    in: RIVAL,
  },
  'writes that are not durable are read': {
    rules: { readsMajority: false },
    without: ['a conflicting open lead has another key and the same contact'],
    breaks: 'an acknowledged lead is in the store',
    in: RIVAL,
  },
  'a lead is opened in one write, and claims its contact in another': {
    rules: { reopeningClaims: false },
    breaks: 'one open lead per contact',
    in: RIVAL,
  },
  'a lead is opened with the claims of the contact that it had when it was read': {
    rules: { opensOnlyIfUnchanged: false },
    breaks: 'one open lead per contact',
    in: CORRECTIONS,
  },
  'a contact is corrected in one write, and claimed in another': {
    rules: { correctionClaims: false },
    breaks: 'one open lead per contact',
    in: CORRECTIONS,
  },
  'a lead that conflicts with a move is not compared with the moved lead': {
    rules: { moverExcludesItself: false },
    breaks: 'no lead conflicts with itself',
    in: TWO_MOVERS,
  },
  'a lead claims its contact by the region only, and not its text': {
    rules: { claimsText: false },
    breaks: 'one open lead per contact',
    in: NEW_REGIONS,
  },
  'a lead is closed in one write, and its claims are freed in another': {
    rules: { closingFrees: false },
    breaks: 'a closed lead has no claims',
    in: RIVAL,
  },
};
