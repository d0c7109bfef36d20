import { randomUUID } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MAX_STALE_CALL_MS, MAX_UPGRADE_MS } from '../../src/domain/claim-renewal.ts';
import { openClaims } from '../../src/domain/claims.ts';
import type { Contact } from '../../src/domain/contact.ts';
import { newId } from '../../src/domain/new-id.ts';
import { Refusal } from '../../src/domain/refusal.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { changeLeadStage } from '../../src/usecases/change-lead-stage.ts';
import { createLead } from '../../src/usecases/create-lead.ts';
import { findLeads } from '../../src/usecases/find-leads.ts';
import { renewClaims } from '../../src/usecases/renew-claims.ts';
import { plus } from '../support/builders.ts';
import { completeRenewals, openClaimsIn } from '../support/claims.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { dropDatabase, restoreDocuments } from './mongo-documents.ts';

/** The leads as requested from the previous release with the ids that it returned, and its keys. */
interface Made {
  readonly leads: readonly {
    readonly studioId: string;
    readonly idempotencyKey: string;
    readonly contact: Contact;
    readonly sourceId?: string;
    readonly note?: string;
    readonly id: string;
  }[];
  readonly keys: readonly string[];
}

const readJson = (name: string) => JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'));

describe('a SQLite file of release 1.0', () => {
  let folder: string;
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  upgrades(
    async () => {
      folder = mkdtempSync(join(tmpdir(), 'lead-intake-upgrade-'));
      const path = join(folder, 'leads.db');
      copyFileSync(join(import.meta.dirname, 'sqlite-1.0.db'), path);
      return openStore(`sqlite:${path}`);
    },
    readJson('sqlite-1.0.json'),
    // On SQLite no process of that release can run beside this one.
    0,
  );
});

describeWithMongo('a MongoDB database of release 1.0', (mongoUrl) => {
  const { made, collections } = readJson('mongodb-1.0.json');
  let url: string;
  afterEach(() => dropDatabase(url));
  upgrades(
    async () => {
      url = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
      await restoreDocuments(url, collections);
      return openStore(url);
    },
    made,
    MAX_UPGRADE_MS,
  );
});

function upgrades(openCopy: () => Promise<Store>, { leads, keys }: Made, releaseOverMs: number): void {
  let store: Store;
  const start = new Date();
  beforeEach(async () => {
    store = await openCopy();
  });
  afterEach(() => store.close());

  const create = (
    studioId: string,
    contact: Contact,
    idempotencyKey: string = newId(),
    more: { sourceId?: string; note?: string } = {},
  ) =>
    createLead(
      { store, newId },
      { studioId, idempotencyKey, displayName: 'Grace Hopper', contact, sourceId: more.sourceId, note: more.note },
    ).catch((error: Refusal) => error.reason);
  const renew = (now: Date) => renewClaims({ store, clock: () => now });
  const renewAll = () => completeRenewals(store, start, MAX_STALE_CALL_MS + releaseOverMs);
  const open = leads.filter(({ contact }) => contact.value !== 'closed@example.org');

  test('replays every creation of that release, before and after the renewal of claims', async () => {
    for (const _ of ['before', 'after']) {
      for (const { studioId, idempotencyKey, contact, id, ...more } of leads) {
        const answer = await create(studioId, contact, idempotencyKey, more);
        expect(answer).toMatchObject({ replayed: true, lead: { id, contact, stage: 'new' } });
      }
      await renewAll();
    }
  });

  test('never gives a contact of that release a second open lead', async () => {
    // Claims of the studio that lost its region are by a region that is unknown until their renewal.
    for (const { studioId, contact } of open.filter(({ studioId }) => studioId !== 'lost-its-region')) {
      expect(await create(studioId, contact)).toBe('LEAD_ALREADY_OPEN');
    }
    // Nothing changes while the renewal waits for the end of that release, so a tenth of that time is a fine enough step.
    const stepMs = Math.max(MAX_STALE_CALL_MS, releaseOverMs / 10);
    for (let now = start; (await renew(now)) > 0; now = plus(now, stepMs)) {
      for (const { studioId, contact } of open) expect(await create(studioId, contact)).toBe('LEAD_ALREADY_OPEN');
      if (now.getTime() > start.getTime() + releaseOverMs + 10 * stepMs) throw new Error('the renewal does not end');
    }
    for (const { studioId, contact } of open) expect(await create(studioId, contact)).toBe('LEAD_ALREADY_OPEN');
  });

  test('accepts contacts that only the first rule took for equal, after the renewal', async () => {
    const others = ['u@strasse.de', '1-800-CONTACTS', '030 1234567 x200'].map(
      (value): Contact => ({ type: value.includes('@') ? 'email' : 'phone', value }),
    );
    for (const contact of others) expect(await create('in-germany', contact)).toBe('LEAD_ALREADY_OPEN');

    await renewAll();

    for (const contact of others) expect(await create('in-germany', contact)).toMatchObject({ replayed: false });
    expect(await store.listClaimRenewals()).toEqual([]);
    for (const studioId of ['in-germany', 'lost-its-region']) {
      const studio = await store.findStudio(studioId);
      if (!studio) throw new Error('no studio');
      for (const { contact, claims } of await openClaimsIn(store, studioId)) {
        expect(claims).toEqual(openClaims(contact, studio));
      }
    }
  });

  test('finds every lead of that release by its contact, open or closed, after the renewal', async () => {
    await renewAll();

    for (const { studioId, contact, id } of leads) {
      const { leads: found, mayBeIncomplete } = await findLeads(
        { store },
        { studioId, contact, pageSize: 0, pageToken: '' },
      );
      expect(found.map((lead) => lead.id)).toContain(id);
      expect(mayBeIncomplete).toBe(false);
    }
  });

  test('can close and reopen leads of that release', async () => {
    const [first] = leads;
    if (!first) throw new Error('no lead');
    const { studioId, id: leadId, contact } = first;
    const move = (stage: 'won' | 'new') => changeLeadStage({ store, clock: () => start }, { studioId, leadId, stage });
    await move('won');
    const next = await create(studioId, contact);
    expect(next).toMatchObject({ replayed: false });
    await expect(move('new')).rejects.toThrow(Refusal);
    await renewAll();
    await expect(move('new')).rejects.toThrow(Refusal);
  });

  test('has all leads, keys and events of that release', async () => {
    const made = leads.filter(({ studioId }) => studioId === 'in-germany').map(({ id }) => id);
    expect((await store.listLeads('in-germany', null, 100)).records.map(({ id }) => id)).toEqual(made.toReversed());
    expect((await store.listApiKeys('in-germany')).map(({ id }) => id)).toEqual(keys.toReversed());
    expect((await store.listAuditEvents('lost-its-region', null)).map(({ to }) => to)).toEqual([
      'active',
      'suspended',
      'active',
    ]);
  });
}
