import type { DatabaseSync } from 'node:sqlite';
import type { Contact, RegionCode } from '../../domain/contact.ts';
import { isOpen, LEAD_STAGES } from '../../domain/lead.ts';
import { isContact, isOneOf } from '../checked.ts';
import type { ClaimRenewalStore, ReportUnreadable } from '../store.ts';
import { contactClaims, keysAsText, keysOf } from './contact-claims.ts';
import type { GroupCommit } from './group-commit.ts';
import { type Row, renewalJson, renewalOf, studioOf } from './rows.ts';

/** Lower than every lead's id. */
const BEFORE_ALL_IDS = '';

/** Claims that are made anew, in SQLite. */
export function sqliteClaimRenewals(
  database: DatabaseSync,
  commits: GroupCommit,
  report: ReportUnreadable,
): ClaimRenewalStore {
  const selectDue = database.prepare('SELECT * FROM studios WHERE claim_renewal IS NOT NULL ORDER BY id');
  const selectPage = database.prepare(`
    SELECT id, contact_type, contact_value, stage, contact_keys, rule_version, rule_region FROM leads
    WHERE studio_id = ? AND id > ? ORDER BY id LIMIT ?`);
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
        const renewal = renewalOf(row);
        return renewal ? [{ studio: studioOf(row, report), renewal }] : [];
      });
    },

    async listOpenClaims(studioId, after, limit) {
      const rows = selectPage.all(studioId, after ?? BEFORE_ALL_IDS, limit);
      const leads = rows.filter(isReadable).map(claimingLead);
      return { leads, next: rows.length < limit ? null : (rows.at(-1)?.id as string) };
    },

    renewClaims(studioId, { id, claims: before }, { contactKeys: wanted, contactRule }) {
      return commits.write(() => {
        const now = selectKeys.get(studioId, id)?.contact_keys;
        if (now !== keysAsText(before.contactKeys)) return null;
        claimed.free(studioId, before.contactKeys, id);
        const isFree = (key: string) => claimed.holderOf(studioId, [key]) === undefined;
        const holder = claimed.holderOf(studioId, wanted) ?? null;
        const contactKeys = holder === null ? wanted : [...new Set([...wanted.filter(isFree), ...before.contactKeys])];
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

/** Whether a lead is open, and has what its claims are made of. What cannot be read keeps what it claims. */
const isReadable = ({ stage, contact_type: type, contact_value: value }: Row): boolean =>
  isOneOf(LEAD_STAGES, stage) && isOpen(stage) && isContact({ type, value });

const claimingLead = (row: Row) => ({
  id: row.id as string,
  contact: { type: row.contact_type as Contact['type'], value: row.contact_value as string },
  claims: {
    contactKeys: keysOf(row.contact_keys as string),
    contactRule: { version: row.rule_version as number, region: row.rule_region as RegionCode | null },
  },
});
