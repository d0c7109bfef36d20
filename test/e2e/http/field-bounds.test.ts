import { expect, test } from 'vitest';
import { aCapture, anEmail, aService, expectProblem, leadOf } from '../../support/service.ts';

const service = aService();

/** One character of two UTF-16 units and four bytes. */
const ASTRAL = '😀';
const MAX_BODY = 32 * 1024;

const anEmailOf = (length: number) => anEmail(`${'e'.repeat(length - 12)}@example.org`);
const aPhone = (value: string) => ({ type: 'phone', value });

test.each([
  ['displayName of 1', { displayName: 'x' }],
  ['displayName of 160', { displayName: 'x'.repeat(160) }],
  ['displayName of 160 astral characters', { displayName: ASTRAL.repeat(160) }],
  ['note of 1', { note: 'x' }],
  ['note of 2000', { note: 'x'.repeat(2000) }],
  ['note of 2000 astral characters', { note: ASTRAL.repeat(2000) }],
  ['e-mail of 253', { contact: anEmailOf(253) }],
  ['e-mail of 254', { contact: anEmailOf(254) }],
  ['e-mail of 254 with astral characters', { contact: anEmail(`${ASTRAL.repeat(242)}@example.org`) }],
  ['phone of 5', { contact: aPhone('12345') }],
  ['phone of 64', { contact: aPhone('1'.repeat(64)) }],
  ['phone of 64 with astral digits', { contact: aPhone('𝟏'.repeat(64)) }],
  ['phone of 5 with 3 digits', { contact: aPhone('1-2-3') }],
  ['phone in digits of another script', { contact: aPhone('٠١٢٣٤') }],
])(
  'a value within its bounds is accepted and returned unchanged: %s',
  {
    tags: [
      '2.1.displayName',
      '2.2.displayName',
      '2.2.note',
      '2.2.email',
      '2.2.phone',
      '2.2.lengths',
      '2.2.phone-form',
      '8.displayName',
      '8.email',
      '8.phone',
      '8.note',
    ],
  },
  async (_, overrides) => {
    const { secret } = await service.aStudioWithKey();

    const lead = await leadOf(await service.post(secret, aCapture(overrides)), 201);

    const { contact, ...shown } = overrides as Record<string, unknown>;
    expect(lead).toMatchObject(shown);
  },
);

test.each([
  ['displayName of 0', 'displayName', { displayName: '' }],
  ['displayName of 161', 'displayName', { displayName: 'x'.repeat(161) }],
  ['displayName of 161 astral characters', 'displayName', { displayName: ASTRAL.repeat(161) }],
  ['note of 0', 'note', { note: '' }],
  ['note of 2001', 'note', { note: 'x'.repeat(2001) }],
  ['note of 2001 astral characters', 'note', { note: ASTRAL.repeat(2001) }],
  ['e-mail of 0', 'contact.value', { contact: anEmail('') }],
  ['e-mail of 255', 'contact.value', { contact: anEmailOf(255) }],
  ['e-mail of 255 with astral characters', 'contact.value', { contact: anEmail(`${ASTRAL.repeat(243)}@example.org`) }],
  ['phone of 0', 'contact.value', { contact: aPhone('') }],
  ['phone of 4', 'contact.value', { contact: aPhone('1234') }],
  ['phone of 4 astral digits', 'contact.value', { contact: aPhone('𝟏'.repeat(4)) }],
  ['phone of 65', 'contact.value', { contact: aPhone('1'.repeat(65)) }],
  ['phone with 2 digits', 'contact.value', { contact: aPhone('1----2') }],
  ['e-mail without @', 'contact.value', { contact: anEmail('ada.example.org') }],
  ['e-mail with two @', 'contact.value', { contact: anEmail('ada@home@example.org') }],
  ['e-mail with nothing before the @', 'contact.value', { contact: anEmail('@example.org') }],
  ['e-mail with nothing after the @', 'contact.value', { contact: anEmail('ada@') }],
  ['e-mail with a blank', 'contact.value', { contact: anEmail('ada lovelace@example.org') }],
  ['e-mail with a blank at the end', 'contact.value', { contact: anEmail('ada@example.org ') }],
  ['e-mail with a no-break space', 'contact.value', { contact: anEmail('ada\u00a0@example.org') }],
  ['e-mail with a line end', 'contact.value', { contact: anEmail('ada@example.org\nBcc:x') }],
  ['e-mail with a control character', 'contact.value', { contact: anEmail('ada\u007f@example.org') }],
])(
  'a value outside its bounds is refused with its field, and nothing is written: %s',
  {
    tags: [
      '2.2.displayName',
      '2.2.note',
      '2.2.email',
      '2.2.phone',
      '2.2.email-form',
      '2.2.phone-form',
      '4.1.5',
      '8.displayName',
      '8.email',
      '8.phone',
      '8.note',
    ],
  },
  async (_, field, overrides) => {
    const { secret, studioId } = await service.aStudioWithKey();

    const response = await service.post(secret, aCapture(overrides));

    await expectProblem(response, 400, 'integration_invalid_request', [field]);
    expect(await service.countLeads(studioId)).toBe(0);
  },
);

test('the largest valid lead is accepted, even with every character escaped', async () => {
  const { secret } = await service.aStudioWithKey();
  const largest = {
    displayName: ASTRAL.repeat(160),
    contact: anEmail(`${ASTRAL.repeat(252)}@b`),
    note: ASTRAL.repeat(2000),
  };
  const escaped = JSON.stringify(largest).replaceAll(ASTRAL, '\\ud83d\\ude00');

  const lead = await leadOf(await service.post(secret, escaped), 201);

  expect(lead).toMatchObject({ displayName: largest.displayName, note: largest.note });
});

test.each([
  ['as one piece', (secret: string, body: string) => service.post(secret, body)],
  ['in chunks', postInChunks],
])('a body of 32 KiB is read, and one byte more is refused: %s', { tags: ['4.1.body'] }, async (_, send) => {
  const { secret, studioId } = await service.aStudioWithKey();
  const longest = JSON.stringify(aCapture()).padEnd(MAX_BODY);
  const longer = JSON.stringify(aCapture()).padEnd(MAX_BODY + 1);

  await leadOf(await send(secret, longest), 201);
  await expectProblem(await send(secret, longer), 400, 'integration_invalid_request', ['body']);

  expect(await service.countLeads(studioId)).toBe(1);
});

/** Without a Content-Length, the size is known only as the body arrives. */
function postInChunks(secret: string, body: string): Promise<Response> {
  const bytes = new TextEncoder().encode(body);
  return fetch(`${service.url}/v1/integrations/leads`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'idempotency-key': crypto.randomUUID(),
    },
    body: new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 1000) controller.enqueue(bytes.subarray(at, at + 1000));
        controller.close();
      },
    }),
    duplex: 'half',
  });
}
