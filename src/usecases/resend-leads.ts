import { crmIdFault, pageTokenFault } from '../../common/rules/field-rules.ts';
import { idBeforePage, pageTokenAfter } from '../domain/cursor.ts';
import type { Clock } from '../domain/new-id.ts';
import { Faults } from '../domain/refusal.ts';
import type { LeadChangeStore } from '../store/store.ts';

/** The maximum number of leads that a call marks. */
const MAX_LEADS_PER_CALL = 500;

interface ResendDependencies {
  readonly store: Pick<LeadChangeStore, 'resendLeads'>;
  readonly clock: Clock;
}

export interface ResentPart {
  /** The number of leads that were marked. */
  readonly leadCount: number;
  /** The number of leads whose records cannot be marked. */
  readonly skippedCount: number;
  /** Of the next part; empty: this was the last. */
  readonly nextPageToken: string;
}

/**
 * Marks a part of a studio's leads as changed, so that the change feed sends them again.
 *
 * @throws Refusal INVALID_REQUEST
 */
export async function resendLeads(
  { store, clock }: ResendDependencies,
  { studioId, pageToken }: { readonly studioId: string; readonly pageToken: string },
): Promise<ResentPart> {
  const after = pageToken === '' ? null : idBeforePage('resent', studioId, pageToken);
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  if (after === undefined) faults.note('pageToken', pageTokenFault(pageToken) ?? 'must be unchanged, from this studio');
  faults.refuseIfAny();
  const { leads, skipped, next } = await store.resendLeads(studioId, after ?? null, MAX_LEADS_PER_CALL, clock());
  const nextPageToken = next === null ? '' : pageTokenAfter('resent', studioId, next);
  return { leadCount: leads, skippedCount: skipped, nextPageToken };
}
