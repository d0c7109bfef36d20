import { UUID } from 'mongodb';
import type { ClaimRenewal } from '../../domain/claim-renewal.ts';
import { CONTACT_RULE_VERSION, type OpenClaims } from '../../domain/claims.ts';
import { readableOrNull } from '../checked.ts';
import type { ClaimingLead, ClaimRenewalStore, ReportUnreadable } from '../store.ts';
import { type Connection, untilKnown } from './connection.ts';
import {
  CLAIM_FIELDS,
  claimingLeadOf,
  claimsDocument,
  closedClaim,
  closedClaimsDocument,
  contactKeysIn,
  formerClosedClaim,
  isErased,
  lastIdOfFull,
  leadIdsAfter,
  leadKey,
  openClaim,
  READ,
  renewalFields,
  renewalOf,
  STUDIO_FIELDS,
  studioOf,
} from './documents.ts';
import { isDuplicate } from './is-duplicate.ts';

export function mongoClaimRenewals(connection: Connection, report: ReportUnreadable): ClaimRenewalStore {
  const { leads, studios, call } = connection;
  return {
    listClaimRenewals: () =>
      call(async () => {
        const isDue = { claimVersion: { $ne: CONTACT_RULE_VERSION } };
        const found = await studios
          .find(isDue, { ...READ, projection: STUDIO_FIELDS })
          .sort({ _id: 1 })
          .toArray();
        return found.flatMap((document) => {
          const renewal = readableOrNull(renewalOf(document), report);
          return renewal ? [{ studio: studioOf(document, report), renewal }] : [];
        });
      }),

    listClaims: (studioId, after, limit) =>
      call(async () => {
        const _id = leadIdsAfter(studioId, after);
        const found = await leads
          .find({ studioId, _id }, { ...READ, projection: CLAIM_FIELDS })
          .sort({ _id: 1 })
          .limit(limit)
          .toArray();
        const claiming = found
          .filter((lead) => !isErased(lead))
          .flatMap((lead) => readableOrNull(claimingLeadOf(studioId, lead), report) ?? []);
        return { leads: claiming, next: lastIdOfFull(found, limit) };
      }),

    renewClaims: claimRenewer(connection),

    saveClaimRenewal: ({ studio, renewal }, next) =>
      call(async () => {
        // Not retried: the next run of the renewal resumes at the stored progress.
        const { matchedCount } = await studios.updateOne(
          { _id: studio.id, regionCode: studio.regionCode, ...storedProgress(renewal) },
          { $set: renewalFields(next) },
        );
        return matchedCount === 1;
      }),
  };
}

/** A condition that the stored progress has not changed. */
function storedProgress(renewal: ClaimRenewal | null) {
  if (renewal === null) return { claimVersion: CONTACT_RULE_VERSION, renewal: null };
  const { step, since, after } = renewal;
  // Stored for the first time: so far the renewal was implied by absent fields.
  const isNew = since.getTime() === 0 && after === null;
  return {
    'renewal.step': isNew ? null : step,
    'renewal.since': isNew ? null : since,
    'renewal.after': after === null ? null : new UUID(after),
  };
}

function claimRenewer({ leads, call }: Connection): ClaimRenewalStore['renewClaims'] {
  /** Returns which of the claims other leads have, and the first such lead. */
  async function claimsOfOthers(studioId: string, leadId: string, { contactKeys }: OpenClaims) {
    const openContactKey = { $in: contactKeys.map(openClaim) };
    const found = await leads.find({ studioId, openContactKey }, { ...READ, projection: CLAIM_FIELDS }).toArray();
    const others = found.filter(({ _id }) => _id.id.toString() !== leadId);
    return {
      taken: others.flatMap((other) => contactKeysIn(other.openContactKey)),
      holder: others[0]?._id.id.toString() ?? null,
    };
  }

  return (studioId, lead, claims) =>
    call((deadline) => {
      let wanted = claims;
      let holder: string | null = null;
      return untilKnown(deadline, async () => {
        const { version, region } = lead.claims.contactRule;
        try {
          // Only if the lead was not closed, reopened, corrected or renewed since it was read.
          await leads.updateOne(
            {
              studioId,
              _id: leadKey(studioId, lead.id),
              'contact.type': lead.contact.type,
              'contact.value': lead.contact.value,
              openContactKey: storedClaims(lead),
              'contactRule.version': version === 1 ? null : version,
              'contactRule.region': region,
            },
            { $set: lead.isOpen ? claimsDocument(wanted) : closedClaimsDocument(lead.id, wanted) },
          );
          return { holder };
        } catch (error) {
          if (!isDuplicate(error)) throw error;
          deadline.throwIfAborted();
          const others = await claimsOfOthers(studioId, lead.id, claims);
          const free = claims.contactKeys.filter((key) => !others.taken.includes(key));
          holder = others.holder;
          // A lead must have a claim; it keeps its own.
          wanted = { ...claims, contactKeys: free.length > 0 ? free : lead.claims.contactKeys };
          return undefined;
        }
      });
    }).then(({ holder }) => holder);
}

/** The claims of a lead as they were stored when it was read. */
function storedClaims({ id, isOpen, claims: { contactKeys, contactRule } }: ClaimingLead): string | string[] {
  if (!isOpen) return contactKeys.length === 0 ? formerClosedClaim(id) : contactKeys.map((key) => closedClaim(key, id));
  return contactRule.version === 1 ? openClaim(contactKeys[0] ?? '') : contactKeys.map(openClaim);
}
