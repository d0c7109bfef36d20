import type { DatabaseSync } from 'node:sqlite';
import { isOpen, type LeadStage } from '../../domain/lead.ts';
import { wholeOrNull } from '../checked.ts';
import type { ClaimRenewalStore, ReportUnreadable } from '../store.ts';
import { contactClaims, keysAsText } from './contact-claims.ts';
import type { GroupCommit } from './group-commit.ts';
import { CLAIM_COLUMNS, claimingLeadOf, renewalJson, renewalOf, studioOf } from './rows.ts';

/** Lower than every lead's id. */
const BEFORE_ALL_IDS = '';

/** Claims that are made anew, in SQLite. */
export function sqliteClaimRenewals(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  report: ReportUnreadable = () => {},
): ClaimRenewalStore {
  const selectDue = database.prepare('SELECT * FROM studios WHERE claim_renewal IS NOT NULL ORDER BY id');
  const selectPage = database.prepare(`
    SELECT ${CLAIM_COLUMNS} FROM leads WHERE studio_id = ? AND id > ? ORDER BY id LIMIT ?`);
  const selectKeys = database.prepare('SELECT contact_keys FROM leads WHERE studio_id = ? AND id = ?');
  const updateKeys = database.prepare(`
    UPDATE leads SET contact_keys = :contactKeys, rule_version = :version, rule_region = :region
    WHERE studio_id = :studioId AND id = :id`);
  const updateRenewal = database.prepare(`
    UPDATE studios SET claim_renewal = :next WHERE id = :id AND claim_renewal = :before AND region_code IS :regionCode`);
  const claimed = contactClaims(database);

  return {
    async listClaimRenewals() {
      return selectDue.all().flatMap((row) => {
        const renewal = wholeOrNull(renewalOf(row), report);
        return renewal ? [{ studio: studioOf(row, report), renewal }] : [];
      });
    },

    async listOpenClaims(studioId, after, limit) {
      const rows = selectPage.all(studioId, after ?? BEFORE_ALL_IDS, limit);
      const open = rows.filter(({ stage }) => isOpen(stage as LeadStage));
      const leads = open.flatMap((row) => wholeOrNull(claimingLeadOf(studioId, row), report) ?? []);
      return { leads, next: rows.length < limit ? null : (rows.at(-1)?.id as string) };
    },

    renewClaims(studioId, { id, claims: before }, { contactKeys: wanted, contactRule }) {
      return commits.write(() => {
        const now = selectKeys.get(studioId, id)?.contact_keys;
        if (now !== keysAsText(before.contactKeys)) return null;
        // Also what it has and does not say, if somebody has changed its row by hand.
        claimed.free(studioId, [...before.contactKeys, ...wanted], id);
        const isFree = (key: string) => claimed.holderOf(studioId, [key]) === undefined;
        const holder = claimed.holderOf(studioId, wanted) ?? null;
        const contactKeys = wanted.filter(isFree);
        claimed.take(studioId, contactKeys, id);
        updateKeys.run({ studioId, id, contactKeys: keysAsText(contactKeys), ...contactRule });
        return holder;
      });
    },

    noteClaimRenewal({ studio, renewal }, next) {
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
