import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { takeAnswer } from '../../support/raw-http.ts';
import { now, type Operation, type RestAnswer } from '../history.ts';
import type { KnownStudio, Life } from '../life.ts';
import { keyOf, newest, one, recent, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';
import {
  ANSWERED_WITHIN_MS,
  breaksByWaiting,
  type LeadChoice,
  leadChoice,
  leadOf,
  noteRequest,
  requestOf,
  textOf,
  where,
  wholeAnswer,
} from './website.ts';

/** How a request is written. */
const writing = fc.record({
  /** The pauses: after which part of the request, and for how long; milliseconds. */
  pauses: fc.array(fc.record({ sharePercent: fc.nat(100), forMs: fc.nat(250) }), {
    maxLength: 8,
  }),
  /** Whether the client closes its sending direction after the request. */
  halfCloses: fc.boolean(),
});

type Writing = typeof writing extends fc.Arbitrary<infer Choice> ? Choice : never;

/**
 * A website server without an HTTP client writes its request in pieces, perhaps half-closes the connection, and reads
 * the response.
 */
export const writeByHand = aScenario({
  weight: 6,
  choice: fc.record({
    asks: fc.constantFrom('create', 'create', 'get', 'list'),
    lead: leadChoice,
    recent,
    writing,
    ...where,
  }),
  async happen(life, { asks, lead, recent, writing, url, key }) {
    const studio = studioAt(life, lead.studio);
    const { secret } = keyOf(studio, key);
    const operation = operationOf(life, studio, asks, { recent, lead });
    const begin = now();
    const answer = await answerTo(life, one(life.world.urls, url), { secret, operation, writing });
    const span = { begin, end: now() };
    noteRequest(life, { kind: 'request', party: 'by hand', operation, studioId: studio.id, secret, answer, span });
  },
});

function operationOf(
  life: Life,
  studio: KnownStudio,
  asks: string,
  { recent, lead }: { readonly recent: number; readonly lead: LeadChoice },
): Operation {
  if (asks === 'create') return { name: 'create', lead: leadOf(life, studio, lead) };
  if (asks === 'list') return { name: 'list', walk: life.newWalk(), page: 0, query: '?limit=100' };
  return { name: 'get', leadId: newest(studio.leadIds, recent) ?? life.uuid('nobody’s lead') };
}

/** The operation, the secret of the caller, and how the request is written. */
interface Request {
  readonly secret: string;
  readonly operation: Operation;
  readonly writing: Writing;
}

async function answerTo(
  life: Life,
  url: string,
  { secret, operation, writing }: Request,
): Promise<RestAnswer | undefined> {
  const { method, path } = requestOf(operation);
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true });
  const chunks: Buffer[] = [];
  const taken = () => takeAnswer(Buffer.concat(chunks), false)?.answer;
  socket.on('error', () => {}).on('data', (chunk: Buffer) => chunks.push(chunk));
  const isOver = new Promise<void>((resolve) => {
    socket.on('data', () => taken() && resolve());
    socket.on('end', resolve).on('close', resolve);
  });
  const giveUp = AbortSignal.timeout(ANSWERED_WITHIN_MS);
  const tooLong = once(giveUp, 'abort');
  void writeInPieces(socket, Buffer.from(textOf(operation, secret)), writing);
  await Promise.race([isOver, tooLong]);
  const answer = taken();
  socket.destroy();
  if (!answer) {
    if (giveUp.aborted) breaksByWaiting(life, method, path);
    return undefined;
  }
  const { status, headers, body } = answer;
  return wholeAnswer(life, method, path, new Response(body.toString(), { status, headers }));
}

async function writeInPieces(socket: ReturnType<typeof connect>, bytes: Buffer, { pauses, halfCloses }: Writing) {
  let written = 0;
  for (const { sharePercent, forMs } of pauses.toSorted((a, b) => a.sharePercent - b.sharePercent)) {
    const until = Math.floor((sharePercent * bytes.length) / 100);
    socket.write(bytes.subarray(written, until));
    written = until;
    await sleep(forMs);
  }
  socket.write(bytes.subarray(written));
  if (halfCloses) socket.end();
}
