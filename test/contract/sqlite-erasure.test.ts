import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openClaims } from '../../src/domain/claims.ts';
import type { Lead } from '../../src/domain/lead.ts';
import { vacuumDatabase } from '../../src/store/open-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { hashBytes } from '../../src/store/sqlite/stored-ids.ts';
import { aLead, aStudio, BY, claimsOf, plus, times } from '../support/builders.ts';
import { temporaryFolder } from '../support/processes.ts';
import { correctLead, moveLead } from './store-actions.ts';

/** Enough leads to fill, split and move pages of the file. */
const LEADS = 600;

/** The personal data of a lead, as bytes that a file can have. */
function personalBytes(index: number, lead: Lead): Buffer[] {
  const { sha256 } = claimsOf(lead).fingerprint;
  return [
    ...[`Name-${index}-`, `King-${index}-`, `person-${index}-@`, `other-${index}-@`, `Note-${index}-`].map((text) =>
      Buffer.from(text),
    ),
    hashBytes(sha256),
    ...openClaims(lead.contact, aStudio()).contactKeys.map(hashBytes),
  ];
}

test('no file of the database has a byte of personal data of an erased lead, whatever happened to the lead before', async () => {
  const folder = temporaryFolder();
  const store = openSqliteStore(join(folder, 'leads.db'));
  onTestFinished(() => store.close());
  await store.putStudio(aStudio(), BY);
  const leads = times(LEADS, (index) =>
    aLead({
      displayName: `Name-${index}-`,
      contact: { type: 'email', value: `person-${index}-@example.org` },
      note: `Note-${index}-`.padEnd((index * 37) % 1500, '.'),
    }),
  );
  await Promise.all(leads.map((lead) => store.createLead(lead, claimsOf(lead))));
  await Promise.all(
    leads.map(async (lead, index) => {
      const now = plus(lead.createdAt, 1000);
      const contact = { type: 'email', value: `other-${index}-@example.org` } as const;
      const correction = { displayName: `King-${index}-`.padEnd((index * 13) % 150, '.'), contact };
      if (index % 3 === 0) await correctLead(store, lead, correction, { now });
      if (index % 5 === 0) await moveLead(store, { ...lead, contact }, 'won', { now });
    }),
  );
  const erased = leads.map((lead, index) => ({ lead, index })).filter(({ index }) => index % 2 === 0);
  await Promise.all(
    erased.map(({ lead: { studioId, id: leadId, createdAt } }) =>
      store.eraseLead({ studioId, leadId, memberId: null, now: plus(createdAt, 60_000) }),
    ),
  );

  const found = () => {
    const files = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
    return erased.flatMap(({ lead, index }) =>
      personalBytes(index, lead).filter((bytes) => files.some((file) => file.includes(bytes))),
    );
  };
  // Nearly all of it is gone immediately. Pieces stay where pages were split, until a vacuum rewrites the file.
  await expect.poll(() => found().length).toBeLessThan(50);
  vacuumDatabase(`sqlite:${join(folder, 'leads.db')}`);
  expect(found()).toEqual([]);
  await store.close();
  expect(found()).toEqual([]);
  const kept = leads[1] as Lead;
  expect(readFileSync(join(folder, 'leads.db')).includes(kept.contact.value)).toBe(true);
});
