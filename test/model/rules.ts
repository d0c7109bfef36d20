/** How leads are created and moved. Each rule has its reason, which shows when the rule is broken. */
export interface Rules {
  /** Is there a unique index on the idempotency key? */
  readonly keyIndex: boolean;
  /** Is there one on the claimed contact? */
  readonly contactIndex: boolean;
  /** In which order does a call look for what is in its way? The database may change between two looks. */
  readonly looks: 'key, contact, key again' | 'key, then contact' | 'both at once';
  /** Which of the two decides when both are taken? */
  readonly decidesBy: 'key' | 'contact';
  /** Is a lead that was found by its contact looked at for its key, too? */
  readonly knowsOwnByContact: boolean;
  /** Is a lead under one's key one's own only with the same data? */
  readonly comparesData: boolean;
  /** Does an insert that is repeated keep its id? */
  readonly keepsId: boolean;
  /** Is only that read which a majority of the servers has? */
  readonly readsMajority: boolean;
  /** Is an insert answered only when a majority has it? */
  readonly awaitsMajority: boolean;
  /** Does a lead that is opened again claim its contact in the same write? */
  readonly reopeningClaims: boolean;
  /** Is a lead opened again only as long as it has the contact that was read? */
  readonly opensOnlyWhatItRead: boolean;
  /** Does an open lead that gets another contact claim it in the same write? */
  readonly correctionClaims: boolean;
  /** Does a mover that finds the very lead in its way try again? */
  readonly moverKnowsItself: boolean;
  /** Does a lead claim the text of its contact, besides what that means in its studio's region? */
  readonly claimsText: boolean;
  /** Does a lead also claim what its contact meant in former regions, until all open leads claim by the region of now? */
  readonly holdsToFormerRegions: boolean;
  /** Does a studio whose region changes once more remember those before that, too? */
  readonly remembersAllRegions: boolean;
  /** Does a renewed lead keep its claims by former regions until these are held to no longer? */
  readonly renewsInTwoSteps: boolean;
  /** Are claims made anew only as long as the lead claims what was read? */
  readonly renewsOnlyWhatItRead: boolean;
}

/** The rules of the store in MongoDB, and so of every store. */
export const RULES: Rules = {
  keyIndex: true,
  contactIndex: true,
  looks: 'key, contact, key again',
  decidesBy: 'key',
  knowsOwnByContact: false,
  comparesData: true,
  keepsId: true,
  readsMajority: true,
  awaitsMajority: true,
  reopeningClaims: true,
  opensOnlyWhatItRead: true,
  correctionClaims: true,
  moverKnowsItself: true,
  claimsText: true,
  holdsToFormerRegions: true,
  remembersAllRegions: true,
  renewsInTwoSteps: true,
  renewsOnlyWhatItRead: true,
};
