import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { ID_BYTES, STUDIO_NUMBER } from '../support/raw-sqlite.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';

const UNKNOWN_STAGE = `UPDATE leads SET stage = 'qualified' WHERE studio_number = ${STUDIO_NUMBER} AND id = ${ID_BYTES}`;
// @proves limits-12
test('the log names each unreadable record and field once an hour, and never its content', async () => {
  const path = join(temporaryFolder(), 'leads.db');
  const core = run('src/main.ts', { env: { DATABASE_URL: `sqlite:${path}` } });
  const clients = connectToCore(await readAddress(core));
  try {
    const { studioId } = await arrangeStudio(clients);
    const contact = { value: { case: 'email', value: 'grace@example.org' } } as const;
    const request = { studioId, idempotencyKey: randomUUID(), displayName: 'Grace', contact, note: 'after six' };
    const leadId = (await clients.leads.createLead(request)).lead?.id ?? '';
    const database = new DatabaseSync(path, { timeout: 100_000 });
    database.prepare(UNKNOWN_STAGE).run(studioId, leadId);
    database.close();

    for (const _ of times(3, () => 0)) await clients.leads.listLeads({ studioId });
    await expect(clients.leads.getLead({ studioId, leadId })).rejects.toThrow('[internal] internal error');
    await core.printed(/"operation":"GetLead","outcome":"INTERNAL"/);

    const lines = core
      .output()
      .split('\n')
      .filter((line) => /unreadable record|cannot be read/.test(line));
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { kind: 'lead', studioId, id: leadId, field: 'stage', msg: 'unreadable record' },
      { err: { message: expect.stringContaining(`the lead ${leadId} of studio ${studioId} cannot be read: stage`) } },
    ]);
    expect(core.output()).not.toMatch(/qualified|Grace|grace|after six/);
  } finally {
    clients.close();
  }
});
