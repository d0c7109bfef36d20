import { connect } from 'node:net';
import { expectDocumentedAnswer } from './documented.ts';

/**
 * Sends raw bytes, such as requests that no well-behaved client makes, and reads one response.
 *
 * @param baseUrl the address to connect to; it is not sent
 * @param end whether to end the sending side after the bytes
 * @throws Error when the connection ends without a complete response
 */
export async function rawRequest(
  baseUrl: string,
  request: string | Buffer,
  { end = false }: { readonly end?: boolean } = {},
): Promise<Response> {
  const response = await send(baseUrl, request, end);
  const [, method, url] = /^([A-Z]+) (?:http:\/\/[^/]+)?(\/[^ #]*)/.exec(request.toString('latin1')) ?? [];
  if (method && url) await expectDocumentedAnswer(method, url, response);
  return response;
}

function send(baseUrl: string, request: string | Buffer, end: boolean): Promise<Response> {
  const { hostname, port } = new URL(baseUrl);
  const bytes = Buffer.isBuffer(request) ? request : Buffer.from(request);
  const hasNoBody = isHead(bytes);
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: end }, () => {
      socket.write(bytes);
      if (end) socket.end();
    });
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const { status, headers, body } = takeAnswer(received, hasNoBody)?.answer ?? {};
      if (status === undefined) return;
      resolve(new Response(hasNoBody ? null : (body?.toString() ?? ''), { status, headers: headers ?? {} }));
      socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`closed without a complete response: ${received.toString('latin1')}`)));
  });
}

/** The maximum time to close a finished connection, less than the timeout for slow callers; milliseconds. */
const CLOSED_WITHIN_MS = 9000;

/**
 * Sends raw bytes on a new connection and reads all responses until the server closes it.
 *
 * @param end whether to end the sending side after the bytes, so that an incomplete request stays incomplete
 * @throws Error when the server does not close the connection in time, or closes it within a response
 */
export function rawConversation(
  baseUrl: string,
  bytes: string | Buffer,
  { end = false }: { readonly end?: boolean } = {},
): Promise<RawAnswer[]> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    const text = () => Buffer.concat(received).toString('latin1');
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true }, () => {
      socket.write(bytes);
      if (end) socket.end();
    });
    const timer = setTimeout(() => {
      reject(new Error(`the connection is still open after: ${text()}`));
      socket.destroy();
    }, CLOSED_WITHIN_MS);
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    socket.on('end', () => socket.end());
    // Bytes that arrive after the server has closed reset the connection.
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(timer);
      const { answers, rest } = takeAnswers(Buffer.concat(received));
      if (rest.length > 0) reject(new Error(`incomplete responses: ${text()}`));
      else resolve(answers);
    });
  });
}

/** Joins the lines of a request, each ended by CRLF. */
export function lines(...head: readonly string[]): string {
  return head.map((line) => `${line}\r\n`).join('');
}

/** A response as received. */
export interface RawAnswer {
  readonly status: number;
  /** The headers by their names in lower case. The values of a repeated name are joined. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Whether a request is HEAD, so that its response has no body whatever its headers say. */
export const isHead = (request: Buffer): boolean => /^(?:\r?\n)*HEAD /.test(request.toString('latin1', 0, 64));

/** Parses the final response at the start of the bytes; undefined while it is incomplete. */
export function takeAnswer(bytes: Buffer, hasNoBody: boolean): { answer: RawAnswer; rest: Buffer } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [statusLine = '', ...headerLines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
  const rest = bytes.subarray(headEnd + 4);
  if (status === 100) return takeAnswer(rest, hasNoBody);
  const headers: Record<string, string> = {};
  for (const line of headerLines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  const taken = hasNoBody
    ? { body: Buffer.alloc(0), rest: rest }
    : headers['transfer-encoding'] === 'chunked'
      ? takeChunks(rest)
      : takeBytes(rest, Number(headers['content-length']));
  return taken && { answer: { status, headers, body: taken.body }, rest: taken.rest };
}

/** Parses all complete responses at the start of the bytes. */
export function takeAnswers(bytes: Buffer): { answers: RawAnswer[]; rest: Buffer } {
  const answers: RawAnswer[] = [];
  let rest = bytes;
  for (;;) {
    const whole = takeAnswer(rest, false);
    // The response to HEAD has no body, so its head is followed by the next response or by nothing.
    const taken = whole?.answer.body.toString('latin1', 0, 5) === 'HTTP/' || !whole ? takeAnswer(rest, true) : whole;
    if (!taken) return { answers, rest };
    answers.push(taken.answer);
    rest = taken.rest;
  }
}

function takeBytes(bytes: Buffer, length: number): { body: Buffer; rest: Buffer } | undefined {
  // A response of unknown length is never complete.
  return bytes.length >= length ? { body: bytes.subarray(0, length), rest: bytes.subarray(length) } : undefined;
}

function takeChunks(bytes: Buffer): { body: Buffer; rest: Buffer } | undefined {
  const chunks: Buffer[] = [];
  let rest = bytes;
  for (;;) {
    const lineEnd = rest.indexOf('\r\n');
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(rest.toString('latin1', 0, lineEnd), 16);
    const chunk = takeBytes(rest.subarray(lineEnd + 2), size + 2);
    if (!chunk) return undefined;
    if (size === 0) return { body: Buffer.concat(chunks), rest: chunk.rest };
    chunks.push(chunk.body.subarray(0, size));
    rest = chunk.rest;
  }
}
