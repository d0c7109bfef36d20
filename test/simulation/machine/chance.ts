import crypto from 'node:crypto';
import http2 from 'node:http2';
import { here } from './machine.ts';

/* Replacements of Node's random sources by that of the machine. */

function fill<Target extends NodeJS.ArrayBufferView>(target: Target): Target {
  const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
  const { number } = here().machine.chance;
  for (let index = 0; index < bytes.length; index += 1) bytes[index] = Math.floor(number() * 256);
  return target;
}

function randomBytes(length: number, callback?: (error: null, bytes: Buffer) => void): Buffer | undefined {
  const bytes = fill(Buffer.alloc(length));
  if (!callback) return bytes;
  setImmediate(callback, null, bytes);
  return undefined;
}

function randomUUID(): string {
  const bytes = fill(Buffer.alloc(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function randomInt(...range: [number, number?]): number {
  const [min, max] = range[1] === undefined ? [0, range[0]] : [range[0], range[1]];
  return here().machine.chance.between(min, max - 1);
}

/** Replaces Node's random sources. */
export function replaceRandomSources(): void {
  Math.random = () => here().machine.chance.number();
  Object.assign(crypto, { randomBytes, randomInt, randomUUID, randomFillSync: fill });
  const webCrypto = Object.getPrototypeOf(globalThis.crypto);
  for (const [name, value] of Object.entries({ randomUUID, getRandomValues: fill })) {
    Object.defineProperty(webCrypto, name, { value, configurable: true });
  }
  replacePingPayloads();
}

/** Replaces the real time, which Node sends in an HTTP/2 ping without a payload. */
function replacePingPayloads(): void {
  const { connect } = http2;
  let isReplaced = false;
  http2.connect = ((...values: Parameters<typeof connect>) => {
    const session = connect(...values);
    if (!isReplaced) replacePingIn(Object.getPrototypeOf(Object.getPrototypeOf(session)));
    isReplaced = true;
    return session;
  }) as typeof connect;
}

function replacePingIn(prototype: http2.Http2Session): void {
  const { ping } = prototype;
  type Callback = (error: Error | null, durationMs: number, payload: Buffer) => void;
  prototype.ping = function (
    this: http2.Http2Session,
    payload: Callback | NodeJS.ArrayBufferView,
    callback?: Callback,
  ) {
    const [bytes, then] = typeof payload === 'function' ? [undefined, payload] : [payload, callback];
    return ping.call(this, (bytes ?? fill(Buffer.alloc(8))) as Buffer, then as Callback);
  } as typeof ping;
}
