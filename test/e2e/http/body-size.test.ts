import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { aCapture, anEmail, aService, expectProblem, readLead } from '../../support/service.ts';

const service = aService();

/** A character of two UTF-16 units and four bytes. */
const ASTRAL = '😀';
const MAX_BODY = 32 * 1024;

test('the largest valid lead is accepted, even with every character escaped', async () => {
  const { secret } = await service.aStudioWithKey();
  const largest = {
    displayName: ASTRAL.repeat(160),
    contact: anEmail(`${ASTRAL.repeat(252)}@b`),
    note: ASTRAL.repeat(2000),
  };
  const escaped = JSON.stringify(largest).replaceAll(ASTRAL, '\\ud83d\\ude00');

  const lead = await readLead(await service.post(secret, escaped), 201);

  expect(lead).toMatchObject({ displayName: largest.displayName, note: largest.note });
});

// @proves bounds-7
test.each([
  ['as one piece', (secret: string, body: string) => service.post(secret, body)],
  ['in chunks', postInChunks],
])('a body of 32 KiB is read and one byte more is refused, sent %s', { tags: ['4.1.body'] }, async (_, send) => {
  const { secret, studioId } = await service.aStudioWithKey();
  const longest = JSON.stringify(aCapture()).padEnd(MAX_BODY);
  const longer = JSON.stringify(aCapture()).padEnd(MAX_BODY + 1);

  await readLead(await send(secret, longest), 201);
  await expectProblem(await send(secret, longer), 400, 'integration_invalid_request', ['body']);

  expect(await service.countLeads(studioId)).toBe(1);
});

/** More than the buffers of both systems hold; bytes. */
const ENDLESS = 64 * 1024 * 1024;

// @proves bounds-7
test.concurrent.for([
  ['with a key that is not valid', 'POST /v1/integrations/leads', 401, 'Transfer-Encoding: chunked'],
  ['at an unknown path', 'POST /nope', 404, 'Transfer-Encoding: chunked'],
  ['of a read', 'GET /docs', 200, 'Transfer-Encoding: chunked'],
  ['of a length that is given', 'POST /nope', 404, `Content-Length: ${ENDLESS}`],
  ['at an address that is not valid', 'POST /%zz', 400, `Content-Length: ${2 ** 40}`],
  ['with a wrong method', 'PUT /v1/integrations/leads', 405, `Content-Length: ${2 ** 40}`],
])(
  'a body that is not needed is not read to its end, and its client gets the response: %s',
  async ([, head, status, framing], { onTestFinished }) => {
    const { hostname: host, port } = new URL(service.url);
    const socket = connect({ host, port: Number(port) });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    socket.write(`${head} HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n`);
    let received = '';
    socket.on('data', (bytes) => {
      received += bytes;
    });
    // Valid as a chunk, and as part of a body without chunks.
    const chunk = Buffer.from(`10000\r\n${'x'.repeat(0x10000)}\r\n`);
    let written = 0;
    const write = () => {
      while (written < ENDLESS && !socket.destroyed) {
        written += chunk.length;
        if (!socket.write(chunk)) {
          socket.once('drain', write);
          return;
        }
      }
    };
    write();
    await new Promise((resolve) => socket.on('close', resolve));
    expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(written).toBeLessThan(ENDLESS);
  },
);

/** Sends a body without a Content-Length, so its size is known only as it arrives. */
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
