/** Forbids every erasure of a lead, or of all leads of a studio, while it stands. It is no change of the lead. */
export interface Hold {
  /** A code, so never personal data. */
  readonly reason: string;
  readonly createdAt: Date;
}

/** Replaces a reason that cannot be read. Such a hold stands like any other. */
export const UNREADABLE_REASON = 'UNREADABLE';
