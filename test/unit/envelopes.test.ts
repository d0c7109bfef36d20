import { PassThrough } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { readEnvelopes, toEnvelope } from '../../common/envelopes.ts';
import { times } from '../support/builders.ts';

const MAX_BYTES = 300;

/** One message for each length at which a head can be cut, and the longest. */
const MESSAGES = [0, 1, 2, 5, 6, 300].map((length) => Buffer.alloc(length, length));

const all = Buffer.concat(MESSAGES.map((message, index) => toEnvelope(message, index === 5 ? 2 : 0)));

/** Returns the messages in a stream that gets some bytes in pieces and ends. */
async function read(bytes: Buffer, pieceBytes = bytes.length) {
  const stream = new PassThrough();
  const envelopes = readEnvelopes(stream, MAX_BYTES);
  for (let at = 0; at < bytes.length; at += pieceBytes) stream.write(bytes.subarray(at, at + pieceBytes));
  stream.end();
  const found: { flags: number; message: Buffer }[] = [];
  for await (const { flags, message } of envelopes) found.push({ flags, message: Buffer.from(message) });
  return found;
}

test('messages arrive whole, however their bytes are cut', async () => {
  const expected = MESSAGES.map((message, index) => ({ flags: index === 5 ? 2 : 0, message }));
  for (const pieceBytes of times(all.length, (index) => index + 1)) {
    await expect(read(all, pieceBytes), `in pieces of ${pieceBytes}`).resolves.toEqual(expected);
  }
});

test.each<[string, Buffer]>([
  ['is too long', toEnvelope(Buffer.alloc(MAX_BYTES + 1))],
  ['is compressed', toEnvelope(gzipSync('text'), 1)],
  ['ends within its head', all.subarray(0, 3)],
  ['ends within its content', all.subarray(0, -1)],
])('a message that %s is a fault', (_, bytes) =>
  expect(read(bytes)).rejects.toMatchObject({ message: expect.stringContaining('the stream is malformed') }),
);

test('a stream that is cut off or fails throws an error after the messages that arrived', async () => {
  for (const error of [undefined, new Error('the network')]) {
    const stream = new PassThrough();
    const envelopes = readEnvelopes(stream, MAX_BYTES);
    stream.write(toEnvelope(Buffer.from('first')));
    await new Promise(setImmediate);
    stream.destroy(error);
    expect((await envelopes.next()).value.message.toString()).toBe('first');
    await expect(envelopes.next()).rejects.toThrow(error?.message ?? 'the stream was closed before its end');
  }
});

test('a stream is not read further until its messages are taken', async () => {
  const stream = new PassThrough({ readableHighWaterMark: 10, writableHighWaterMark: 10 });
  const envelopes = readEnvelopes(stream, MAX_BYTES);
  const sent = times(100, (index) => toEnvelope(Buffer.from([index])));
  for (const bytes of sent) stream.write(bytes);
  stream.end();
  await new Promise(setImmediate);
  expect(stream.writableLength).toBeGreaterThan(sent.length * 5);
  const found: number[] = [];
  for await (const { message } of envelopes) found.push(message[0] ?? -1);
  expect(found).toEqual(times(100, (index) => index));
});
