import { randomUUID } from 'node:crypto';
import { copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isCanonicalUuid } from '../../common/rules/field-rules.ts';
import { isOpen, type Lead } from '../../src/domain/lead.ts';
import { readTexts } from '../../src/domain/lead-data.ts';
import { newId, systemClock } from '../../src/domain/new-id.ts';
import type { Refusal } from '../../src/domain/refusal.ts';
import type { Studio } from '../../src/domain/studio.ts';
import type { Store } from '../../src/store/store.ts';
import { createLead } from '../../src/usecases/create-lead.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { openedStore } from '../support/patience.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { collectAnswers, type Made, type MadeLead } from './answers.ts';
import { type Collections, dropDatabase, restoreDocuments } from './mongo-documents.ts';

/** A fixture: the data that a release wrote, and the results of its store. */
interface Written {
  readonly made: Made;
  readonly answers: Record<string, unknown>;
  /** The documents of a MongoDB database. */
  readonly collections?: Collections;
}

const toPath = (name: string) => join(import.meta.dirname, name);
const written = (name: string): Written => JSON.parse(readFileSync(toPath(name), 'utf8'));

/** The releases that have fixtures with answers, written by `write-database.ts`. */
const RELEASES = readdirSync(import.meta.dirname).flatMap((name) => /^sqlite-(\d+\.\d+)\.json$/.exec(name)?.[1] ?? []);

describe.each(RELEASES)('a SQLite file of release %s', (release) => {
  answersAsBefore(written(`sqlite-${release}.json`), async () => {
    const path = join(temporaryFolder(), 'leads.db');
    copyFileSync(toPath(`sqlite-${release}.db`), path);
    return openedStore(`sqlite:${path}`);
  });
});

describeWithMongo('a MongoDB database', (mongoUrl) => {
  describe.each(RELEASES)('written by release %s', (release) => {
    const all = written(`mongodb-${release}.json`);
    answersAsBefore(all, async () => {
      const url = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
      await restoreDocuments(url, all.collections ?? {});
      onTestFinished(() => dropDatabase(url));
      return openedStore(url);
    });
  });
});

function answersAsBefore({ made, answers }: Written, openCopy: () => Promise<Store>): void {
  async function open(): Promise<Store> {
    const store = await openCopy();
    onTestFinished(() => store.close());
    return store;
  }
  const createAgain = (store: Store, { id, ...command }: MadeLead, overrides: Partial<MadeLead> = {}) =>
    createLead(
      { store, clock: systemClock, newId },
      { ...command, ...overrides, ...readTexts({ ...command, ...overrides }) },
    ).catch((error: Refusal) => error.reason);
  const isErased = ({ idempotencyKey }: MadeLead) =>
    (answers[`created with ${idempotencyKey}`] as { kind?: string } | null)?.kind === 'erased';

  const isEnded = ({ studioId }: MadeLead) =>
    (answers[`studio ${studioId}`] as Pick<Studio, 'status'>).status === 'ended';
  const leadIn = ({ id }: MadeLead) => answers[`lead ${id}`] as Lead | null;

  // @proves leads-9
  test('a database of an earlier release returns the same results as that release', async () => {
    const found = await collectAnswers(await open(), made);
    // Only release 1.2 had holds; its migration records their end.
    const events = found['events of held'] as { caller: string }[] | undefined;
    if (events) expect(events.shift()).toMatchObject({ caller: '(migration)' });
    expect(found).toMatchObject(answers);
  });

  test('a database of an earlier release replays every creation except of erased leads', async () => {
    const store = await open();
    for (const lead of made.leads) {
      const answer = await createAgain(store, lead);
      if (isEnded(lead)) expect(answer).toBe('STUDIO_ENDED');
      else if (isErased(lead)) expect(answer).toBe('IDEMPOTENCY_CONFLICT');
      else expect(answer).toMatchObject({ replayed: true, lead: { id: lead.id, displayName: lead.displayName } });
    }
  });

  // @proves leads-41
  test('an enquiry of an earlier release retains its id when the lead gets another', async () => {
    const store = await open();
    const enquired = made.leads.filter((lead) => leadIn(lead)?.enquiries);
    const listIds = async ({ studioId, id }: MadeLead) =>
      (await store.findLead(studioId, id))?.enquiries?.map((enquiry) => enquiry.id) ?? [];
    for (const lead of enquired) {
      const before = await listIds(lead);
      for (const id of before) expect(id).toSatisfy(isCanonicalUuid);
      const { contact } = leadIn(lead) as Lead;
      const again = { contact, idempotencyKey: newId(), displayName: 'Grace again' };
      expect(await createAgain(store, lead, again)).toBe('LEAD_ALREADY_OPEN');
      const after = await listIds(lead);
      expect(after).toEqual([...before, expect.any(String)]);
      expect(new Set(after).size).toBe(after.length);
    }
    expect(enquired).toHaveLength(2);
  });

  // @proves leads-6
  test('an open lead of an earlier release still blocks its contact', async () => {
    const store = await open();
    const held = made.leads.flatMap((lead) => {
      const found = leadIn(lead);
      return found && isOpen(found.stage) ? [{ lead, contact: found.contact }] : [];
    });
    expect(held.length).toBeGreaterThan(4);
    for (const { lead, contact } of held) {
      expect(await createAgain(store, lead, { contact, idempotencyKey: newId() })).toBe('LEAD_ALREADY_OPEN');
    }
  });
}
