import type { DatabaseSync } from 'node:sqlite';
import { isOpen, type LeadStage } from '../../domain/lead.ts';
import { readableOrNull } from '../checked.ts';
import type { ClaimRenewalStore, ReportUnreadable } from '../store.ts';
import { contactClaims } from './contact-claims.ts';
import type { GroupCommit } from './group-commit.ts';
import { CLAIM_COLUMNS, claimingLeadOf, renewalJson, renewalOf, STUDIO_COLUMNS, studioOf } from './rows.ts';
import { hashesBytes, idText } from './stored-ids.ts';
import { studioNumbers } from './studio-numbers.ts';

export function sqliteClaimRenewals(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  report: ReportUnreadable,
): ClaimRenewalStore {
  const selectDue = database.prepare(
    `SELECT ${STUDIO_COLUMNS} FROM studios WHERE claim_renewal IS NOT NULL ORDER BY id`,
  );
  const selectPage = database.prepare(`
    SELECT ${CLAIM_COLUMNS}, erased_at FROM leads WHERE studio_number = ? AND id > unhex(?, '-') ORDER BY id LIMIT ? + 0`);
  const selectKeys = database.prepare(`
    SELECT number, stage, contact_keys FROM leads
    WHERE studio_number = ? AND id = unhex(?, '-') AND contact_type = ? AND contact_value = ?`);
  const updateKeys = database.prepare(
    'UPDATE leads SET contact_keys = ?, rule_version = ?, rule_region = ? WHERE number = ?',
  );
  const updateRenewal = database.prepare(`
    UPDATE studios SET claim_renewal = :next WHERE id = :id AND claim_renewal IS :before AND region_code IS :regionCode`);
  const studios = studioNumbers(database);
  const claimed = contactClaims(database);

  return {
    async listClaimRenewals() {
      return selectDue.all().flatMap((row) => {
        const renewal = readableOrNull(renewalOf(row), report);
        return renewal ? [{ studio: studioOf(row, report), renewal }] : [];
      });
    },

    async listClaims(studioId, after, limit) {
      const studio = studios.of(studioId);
      if (studio === undefined) return { leads: [], next: null };
      const rows = selectPage.all(studio, after ?? '', limit);
      const present = rows.filter(({ erased_at }) => erased_at === null);
      const leads = present.flatMap((row) => readableOrNull(claimingLeadOf(studioId, row), report) ?? []);
      return { leads, next: rows.length < limit ? null : idText(rows.at(-1)?.id as string) };
    },

    renewClaims(studioId, { id, contact, isOpen: wasOpen, claims: before }, { contactKeys: wanted, contactRule }) {
      return commits.write(() => {
        const studio = studios.inWrite(studioId);
        const now = studio === undefined ? undefined : selectKeys.get(studio, id, contact.type, contact.value);
        if (studio === undefined || now === undefined) return null;
        if (isOpen(now.stage as LeadStage) !== wasOpen) return null;
        if (!hashesBytes(before.contactKeys).equals(now.contact_keys as Uint8Array)) return null;
        const lead = { number: now.number as number, isOpen: wasOpen };
        // Also claims that its row does not list, if it was changed by hand.
        claimed.free(studio, [...before.contactKeys, ...wanted], lead);
        // Closed leads do not conflict.
        const isFree = (key: string) => !wasOpen || claimed.holderOf(studio, [key]) === undefined;
        const holder = wasOpen ? claimed.holderOf(studio, wanted) : undefined;
        const contactKeys = wanted.filter(isFree);
        claimed.take(studio, contactKeys, lead);
        updateKeys.run(hashesBytes(contactKeys), contactRule.version, contactRule.region, lead.number);
        return holder ?? null;
      });
    },

    saveClaimRenewal({ studio, renewal }, next) {
      return commits.write(() => {
        const { id, regionCode } = studio;
        const { changes } = updateRenewal.run({
          id,
          regionCode,
          before: renewalJson(renewal),
          next: renewalJson(next),
        });
        return changes === 1;
      });
    },
  };
}
