import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { times } from '../../support/builders.ts';
import { lines, rawConversation } from '../../support/raw-http.ts';
import { aCapture, aService, LEADS, type StudioWithKey } from '../../support/service.ts';

const service = aService({ deadlines: { requestArrivalMs: 10 * 60_000 } });
let studio: StudioWithKey;
beforeAll(async () => {
  studio = await service.aStudioWithKey();
});

/** Returns a valid creation as text; `promisedBytes` makes its Content-Length too large. */
function creation({ secret = studio.secret, promisedBytes = 0 } = {}): string {
  const body = JSON.stringify(aCapture());
  return (
    lines(
      `POST ${LEADS} HTTP/1.1`,
      'Host: a',
      `Authorization: Bearer ${secret}`,
      'Content-Type: application/json',
      `Idempotency-Key: ${randomUUID()}`,
      `Content-Length: ${Buffer.byteLength(body) + promisedBytes}`,
      '',
    ) + body
  );
}

/** Shorter than the idle timeout and the request timeout; milliseconds. */
const AT_ONCE_MS = 60_000;

// @proves hostile-5 node-6
describe('a caller that half-closes its connection and reads', () => {
  /** Returns the statuses until the connection ends, long before the idle timeout. */
  const answeredBeforeEnd = async (bytes: string) => {
    const answers = await rawConversation(service.url, bytes, { end: true });
    return answers.map(({ status }) => status);
  };
  const reading = () => lines(`GET ${LEADS} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${studio.secret}`, '');

  test('a caller that half-closes its connection gets the responses to a creation and to reads', async () => {
    const before = await service.countLeads(studio.studioId);
    expect(await answeredBeforeEnd(creation())).toEqual([201]);
    expect(await answeredBeforeEnd(reading())).toEqual([200]);
    expect(await answeredBeforeEnd(reading() + creation() + reading())).toEqual([200, 201, 200]);
    expect(await service.countLeads(studio.studioId)).toBe(before + 2);
  });

  // From 32 waiting requests on, reading pauses, so the end of the connection is read after them.
  test('a caller that half-closes its connection gets the response to each of many creations', async () => {
    const { studioId, secret } = await service.aStudioWithKey();
    const creations = times(40, () => creation({ secret }));
    expect(await answeredBeforeEnd(creations.join(''))).toEqual(creations.map(() => 201));
    expect(await service.countLeads(studioId)).toBe(40);
  });

  test.each([
    ['nothing', () => '', []],
    ['half a head', () => reading().slice(0, -10), [400]],
    ['half a body', () => creation({ promisedBytes: 10 }), [400]],
  ])('a half-closed connection is closed immediately after %s', async (_, bytes, answered) => {
    const begun = performance.now();
    expect(await answeredBeforeEnd(bytes())).toEqual(answered);
    expect(performance.now() - begun).toBeLessThan(AT_ONCE_MS);
  });
});
