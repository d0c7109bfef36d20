import { expect, onTestFinished, test } from 'vitest';
import { STORE_CALL_MS } from '../../common/deadlines.ts';
import { MAX_ACKNOWLEDGEMENTS } from '../../src/domain/lead-change.ts';
import { newId } from '../../src/domain/new-id.ts';
import { openMongoStore } from '../../src/store/mongo/mongo-store.ts';
import { STUDIO_ID, times } from '../support/builders.ts';
import { startFakeMongoDb } from '../support/fake-mongodb.ts';

test('the most acknowledgements of one call are one command, which the server ends before the deadline', async () => {
  const fake = await startFakeMongoDb();
  const store = await openMongoStore(`${fake.url}/leads`);
  onTestFinished(async () => {
    await store.close();
    await fake.stop();
  });
  const acknowledgements = times(MAX_ACKNOWLEDGEMENTS, (place) => ({
    studioId: STUDIO_ID,
    leadId: newId(),
    revision: place + 1,
  }));

  expect(await store.acknowledgeLeadChanges(acknowledgements)).toBe(MAX_ACKNOWLEDGEMENTS);
  expect(await store.acknowledgeLeadChanges([])).toBe(0);

  const sent = fake.commands.filter(({ update }) => update === 'leads');
  expect(sent.map(({ updates }) => updates.length)).toEqual([MAX_ACKNOWLEDGEMENTS]);
  expect(sent[0]?.maxTimeMS).toBeLessThan(STORE_CALL_MS);
});
