import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createOtlpTracer } from '../../common/otlp-tracer.ts';
import { heapBytes } from '../support/heap.ts';

/** How many spans there are, and what a span that is kept takes at the least; bytes. */
const SPANS = 100_000;
const SPAN_BYTES = 500;

test('a receiver that takes nothing costs no more memory than the spans that may wait', async () => {
  const sockets: Socket[] = [];
  const receiver = createServer((socket) => sockets.push(socket.pause()));
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const tracer = createOtlpTracer('test', `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`);
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    receiver.close();
    await tracer.close();
  });
  const before = heapBytes();
  for (let index = 0; index < SPANS; index += 1) {
    tracer.begin('createLead', undefined).end({ failed: false, attributes: { requestId: `${index}` } });
    if (index % 1000 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(heapBytes() - before).toBeLessThan((SPANS * SPAN_BYTES) / 3);
});
