import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { createLeadIntakeClient, type LeadCapture } from '../../sdk/index.ts';
import { createOutbox, keyFor, OutboxError } from '../../sdk/outbox/index.ts';
import { aService } from '../support/service.ts';

const service = aService();

const capture = (value: string): LeadCapture => ({ displayName: 'Zoë', contact: { type: 'email', value } });

describe('the key of a submitted form', () => {
  const formKey = randomUUID();

  test('is the same for the same form and data, and differs otherwise', () => {
    const key = keyFor(formKey, capture('zoe@example.com'));
    expect(key).toMatch(/^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect(keyFor(formKey, capture('zoe@example.com'))).toBe(key);
    expect(keyFor(formKey, capture('zoë@example.com'))).not.toBe(key);
    expect(keyFor(randomUUID(), capture('zoe@example.com'))).not.toBe(key);
  });

  test('is the same whether a line break is posted as one character or two, and an empty field or none', () => {
    const key = keyFor(formKey, { ...capture('zoe@example.com'), note: 'one\ntwo' });
    expect(keyFor(formKey, { ...capture('zoe@example.com'), note: 'one\r\ntwo', sourceId: '' })).toBe(key);
    expect(keyFor(formKey, { ...capture('zoe@example.com'), note: 'one two' })).not.toBe(key);
    // As release 1.1 derived it.
    expect(keyFor('page', { note: 'one\ntwo', ...capture('zoe@example.com'), sourceId: null })).toBe(
      '4dcc66f9-13a1-88b6-ab98-61ffb44e3db4',
    );
  });

  test('is not derived from an empty form key, which all forms would share', () => {
    expect(() => keyFor('', capture('zoe@example.com'))).toThrow(TypeError);
    expect(() => keyFor(undefined as unknown as string, capture('zoe@example.com'))).toThrow(TypeError);
    expect(() => keyFor(formKey, [] as unknown as LeadCapture)).toThrow(TypeError);
  });
});

test('a connection that returns rows as arrays is refused, and nothing is sent', async () => {
  const { studioId, secret } = await service.aStudioWithKey();
  const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: secret });
  const database = new DatabaseSync(':memory:', { returnArrays: true });
  const outbox = createOutbox();
  await outbox.setUp(database);
  outbox.add(database, capture(`${randomUUID()}@example.com`));
  await expect(outbox.deliver(database, client)).rejects.toThrow(OutboxError);
  expect(await service.countLeads(studioId)).toBe(0);
});
