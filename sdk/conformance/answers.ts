import { type IncomingMessage, STATUS_CODES } from 'node:http';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { Answer, Attempt } from './conversation.ts';
import shared from './shared.json' with { type: 'json' };

/** A response with defaults applied and its bytes rendered. */
export interface WholeAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body; undefined unless it is JSON of the media type that the service uses for the status. */
  readonly body: unknown;
  /** The bytes on the wire. */
  readonly bytes: Buffer;
}

/**
 * Returns the complete response to an attempt, as if it were not cut.
 *
 * @param request for which it is encoded
 *
 * @throws Error when shared.json has no answer with that name
 */
export function makeAnswer(
  { answer, keepsConnection = false }: Attempt,
  request?: IncomingMessage,
): WholeAnswer | undefined {
  if (answer === undefined) return undefined;
  const {
    status = 200,
    json,
    text = JSON.stringify(json),
    spaces = 0,
    dateAheadSeconds: ahead,
    encoding,
    ifAsked,
    ...more
  } = merged(typeof answer === 'string' ? { like: answer } : answer);
  const ofService = status < 400 ? 'application/json' : 'application/problem+json';
  const headers = new Headers(json === undefined ? {} : { 'content-type': ofService });
  for (const [name, value] of Object.entries(more.headers ?? {})) headers.set(name, value);
  if (ahead !== undefined) headers.set('date', new Date(Date.now() + ahead * 1000).toUTCString());
  const isEncoded =
    encoding !== undefined && request !== undefined && (!ifAsked || readCodings(request).includes(encoding));
  if (isEncoded) headers.set('content-encoding', encoding);
  const content = Buffer.from(text + ' '.repeat(spaces));
  const isOfService = headers.get('content-type')?.split(';')[0]?.toLowerCase() === ofService;
  return {
    status,
    headers,
    body: isOfService ? json : undefined,
    bytes: encodeBytes(status, headers, isEncoded ? ENCODE[encoding](content) : content, { ...more, keepsConnection }),
  };
}

const ENCODE = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync };

/** The encodings that a client asks for. */
export const readCodings = ({ headers }: IncomingMessage): readonly string[] =>
  String(headers['accept-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((each) => each.split(';')[0]?.trim() ?? '')
    .filter(Boolean);

function merged({ like, lead, ...own }: Answer): Answer {
  if (like === undefined) return own;
  const base = merged(named(like));
  if (lead !== undefined) return merged({ like, ...own, json: { lead: { ...Object(base.json).lead, ...lead } } });
  const { json: _, text: __, ...withoutBody } = base;
  const hasBody = own.json !== undefined || own.text !== undefined;
  return { ...(hasBody ? withoutBody : base), ...own, headers: { ...base.headers, ...own.headers } };
}

function named(name: string): Answer {
  const answer = (shared.answers as Readonly<Record<string, Answer>>)[name];
  if (!answer) throw new Error(`shared.json has no answer ${name}`);
  return answer;
}

function encodeBytes(
  status: number,
  headers: Headers,
  content: Buffer,
  { framing = 'length', isAfterEarlyHints, keepsConnection }: Answer & { readonly keepsConnection: boolean },
): Buffer {
  const earlyHints = isAfterEarlyHints ? 'HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n' : '';
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    ...[...headers].map(([name, value]) => `${name}: ${value}`),
    ...(framing === 'length' ? [`content-length: ${content.length}`] : []),
    ...(framing === 'chunked' ? ['transfer-encoding: chunked'] : []),
    `connection: ${keepsConnection ? 'keep-alive' : 'close'}`,
  ];
  const head = Buffer.from(`${earlyHints}${lines.join('\r\n')}\r\n\r\n`);
  return Buffer.concat([head, framing === 'chunked' ? inChunks(content) : content]);
}

function inChunks(content: Buffer): Buffer {
  const half = Math.floor(content.length / 2);
  const chunks = [content.subarray(0, half), content.subarray(half), Buffer.alloc(0)];
  return Buffer.concat(
    chunks.flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]),
  );
}
