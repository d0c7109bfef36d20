import { STATUS_CODES } from 'node:http';
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
 * @throws Error when shared.json has no answer with that name
 */
export function answerOf({ answer, keepsConnection = false }: Attempt): WholeAnswer | undefined {
  if (answer === undefined) return undefined;
  const {
    status = 200,
    json,
    text = JSON.stringify(json),
    spaces = 0,
    dateAheadSeconds: ahead,
    ...more
  } = merged(typeof answer === 'string' ? { like: answer } : answer);
  const ofService = status < 400 ? 'application/json' : 'application/problem+json';
  const headers = new Headers(json === undefined ? {} : { 'content-type': ofService });
  for (const [name, value] of Object.entries(more.headers ?? {})) headers.set(name, value);
  if (ahead !== undefined) headers.set('date', new Date(Date.now() + ahead * 1000).toUTCString());
  const isOfService = headers.get('content-type')?.split(';')[0]?.toLowerCase() === ofService;
  return {
    status,
    headers,
    body: isOfService ? json : undefined,
    bytes: bytesOf(status, headers, text + ' '.repeat(spaces), { ...more, keepsConnection }),
  };
}

function merged({ like, ...own }: Answer): Answer {
  if (like === undefined) return own;
  const base = merged(named(like));
  const { json: _, text: __, ...withoutBody } = base;
  const hasBody = own.json !== undefined || own.text !== undefined;
  return { ...(hasBody ? withoutBody : base), ...own, headers: { ...base.headers, ...own.headers } };
}

function named(name: string): Answer {
  const answer = (shared.answers as Readonly<Record<string, Answer>>)[name];
  if (!answer) throw new Error(`shared.json has no answer ${name}`);
  return answer;
}

function bytesOf(
  status: number,
  headers: Headers,
  text: string,
  { framing = 'length', isAfterEarlyHints, keepsConnection }: Answer & { readonly keepsConnection: boolean },
): Buffer {
  const earlyHints = isAfterEarlyHints ? 'HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n' : '';
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    ...[...headers].map(([name, value]) => `${name}: ${value}`),
    ...(framing === 'length' ? [`content-length: ${Buffer.byteLength(text)}`] : []),
    ...(framing === 'chunked' ? ['transfer-encoding: chunked'] : []),
    `connection: ${keepsConnection ? 'keep-alive' : 'close'}`,
  ];
  return Buffer.from(`${earlyHints}${lines.join('\r\n')}\r\n\r\n${framing === 'chunked' ? inChunks(text) : text}`);
}

function inChunks(text: string): string {
  const half = Math.floor(text.length / 2);
  return [text.slice(0, half), text.slice(half), '']
    .map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}\r\n`)
    .join('');
}
