/** How leads are created and moved. The tests break each rule to show why it is needed. */
export interface Rules {
  /** Is there a unique index on the idempotency key? */
  readonly keyIndex: boolean;
  /** Is there a unique index on the claimed contact? */
  readonly contactIndex: boolean;
  /** In which order does a call look for the conflicting lead? The database may change between two reads. */
  readonly looks: 'key, contact, key again' | 'key, then contact' | 'both at once';
  /** Which of the two decides when both are taken? */
  readonly decidesBy: 'key' | 'contact';
  /** Does a call compare the key of a lead that it found by its contact? */
  readonly comparesKeyOfContact: boolean;
  /** What does a call get whose key has a lead? By its data, a replay or a conflict; or one of them always. */
  readonly repetitionGets: 'what its data say' | 'a replay' | 'a conflict';
  /** Does a repeated insert keep its id? */
  readonly keepsId: boolean;
  /** Are only writes read that a majority of the servers has stored? */
  readonly readsMajority: boolean;
  /** Is an insert answered only when a majority has stored it? */
  readonly awaitsMajority: boolean;
  /** Does reopening a lead claim its contact in the same write? */
  readonly reopeningClaims: boolean;
  /** Is a lead reopened only if it still has the contact that was read? */
  readonly opensOnlyIfUnchanged: boolean;
  /** Does correcting the contact of an open lead claim the new one in the same write? */
  readonly correctionClaims: boolean;
  /** Does a mover retry when the conflicting lead is the one that it moves? */
  readonly moverExcludesItself: boolean;
  /** Does a lead claim the text of its contact, besides its normalized form for its studio's region? */
  readonly claimsText: boolean;
  /** Does closing a lead free its claims in the same write? */
  readonly closingFrees: boolean;
}

/** The rules of the MongoDB store, and so of every store. */
export const RULES: Rules = {
  keyIndex: true,
  contactIndex: true,
  looks: 'key, contact, key again',
  decidesBy: 'key',
  comparesKeyOfContact: false,
  repetitionGets: 'what its data say',
  keepsId: true,
  readsMajority: true,
  awaitsMajority: true,
  reopeningClaims: true,
  opensOnlyIfUnchanged: true,
  correctionClaims: true,
  moverExcludesItself: true,
  claimsText: true,
  closingFrees: true,
};
