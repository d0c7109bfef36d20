import { connect } from 'node:net';
import { expectDocumentedAnswer } from './documented.ts';

/**
 * Sends bytes as they are, for requests that no well-behaved client can make, and reads one answer.
 *
 * @param baseUrl where to connect to; nothing of it is sent
 * @throws Error when the connection ends without a whole answer
 */
export async function rawRequest(baseUrl: string, request: string | Buffer): Promise<Response> {
  const response = await send(baseUrl, request);
  const [, method, url] = /^([A-Z]+) (?:http:\/\/[^/]+)?(\/[^ #]*)/.exec(request.toString('latin1')) ?? [];
  if (method && url) await expectDocumentedAnswer(method, url, response);
  return response;
}

function send(baseUrl: string, request: string | Buffer): Promise<Response> {
  const { hostname, port } = new URL(baseUrl);
  const bytes = Buffer.isBuffer(request) ? request : Buffer.from(request);
  const hasNoBody = bytes.toString('latin1', 0, 5) === 'HEAD ';
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const response = parseResponse(received, hasNoBody);
      if (!response) return;
      resolve(response);
      socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`closed without a whole answer: ${received.toString('latin1')}`)));
  });
}

/** Lines of a request, ended as HTTP wants it, then an optional body. */
export function lines(...head: readonly string[]): string {
  return head.map((line) => `${line}\r\n`).join('');
}

/** The answer that the bytes hold; undefined while it is not whole. */
function parseResponse(bytes: Buffer, hasNoBody: boolean): Response | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [statusLine = '', ...headerLines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const status = Number(statusLine.split(' ')[1]);
  const rest = bytes.subarray(headEnd + 4);
  if (status === 100) return parseResponse(rest, hasNoBody);
  const headers = new Headers(headerLines.map((line) => line.split(/: ?(.*)/, 2) as [string, string]));
  const body = hasNoBody ? '' : bodyOf(rest, headers);
  return body === undefined ? undefined : new Response(body, { status, headers });
}

function bodyOf(bytes: Buffer, headers: Headers): string | undefined {
  if (headers.get('transfer-encoding') !== 'chunked') {
    const length = Number(headers.get('content-length'));
    return bytes.length < length ? undefined : bytes.toString('utf8', 0, length);
  }
  // No body of this service has line ends, so the chunks are the lines between their sizes.
  const chunks = bytes.toString().split('\r\n');
  return bytes.toString().endsWith('\r\n0\r\n\r\n') ? chunks.filter((_, index) => index % 2 === 1).join('') : undefined;
}
