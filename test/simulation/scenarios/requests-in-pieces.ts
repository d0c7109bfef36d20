import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { takeAnswer } from '../../support/raw-http.ts';
import { now, type Operation, type RestAnswer } from '../history.ts';
import type { KnownStudio, Simulation } from '../simulation.ts';
import { keyOf, newest, one, recent, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';
import {
  ANSWERED_WITHIN_MS,
  breaksByWaiting,
  type LeadChoice,
  leadChoice,
  leadOf,
  recordRequest,
  requestOf,
  textOf,
  where,
  wholeAnswer,
} from './website.ts';

/** How a request is written. */
const writing = fc.record({
  /** The pauses: after which part of the request, and for how long; milliseconds. */
  pauses: fc.array(fc.record({ sharePercent: fc.nat(100), forMs: fc.nat(250) }), { maxLength: 8 }),
  /** Whether the client closes its sending direction after the request. */
  halfCloses: fc.boolean(),
});

type Writing = typeof writing extends fc.Arbitrary<infer Choice> ? Choice : never;

/**
 * A website server without an HTTP client writes its request in pieces, perhaps half-closes the connection, and reads
 * the response.
 */
export const writeInPieces = aScenario({
  weight: 6,
  choice: fc.record({
    kind: fc.constantFrom('create', 'create', 'get', 'list'),
    lead: leadChoice,
    recent,
    writing,
    ...where,
  }),
  async run(sim, { kind, lead, recent, writing, url, key }) {
    const studio = studioAt(sim, lead.studio);
    const { secret } = keyOf(studio, key);
    const operation = operationOf(sim, studio, kind, { recent, lead });
    const begin = now();
    const answer = await answerTo(sim, one(sim.world.urls, url), { secret, operation, writing });
    const span = { begin, end: now() };
    recordRequest(sim, {
      kind: 'request',
      party: 'raw client',
      operation,
      studioId: studio.id,
      secret,
      answer,
      span,
    });
  },
});

function operationOf(
  sim: Simulation,
  studio: KnownStudio,
  kind: string,
  { recent, lead }: { readonly recent: number; readonly lead: LeadChoice },
): Operation {
  if (kind === 'create') return { name: 'create', lead: leadOf(sim, studio, lead) };
  if (kind === 'list') return { name: 'list', walk: sim.newWalk(), page: 0, query: '?limit=100' };
  return { name: 'get', leadId: newest(studio.leadIds, recent) ?? sim.uuid('unknown lead') };
}

/** The operation, the secret of the caller, and how the request is written. */
interface Request {
  readonly secret: string;
  readonly operation: Operation;
  readonly writing: Writing;
}

async function answerTo(
  sim: Simulation,
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
  void writePieces(socket, Buffer.from(textOf(operation, secret)), writing);
  await Promise.race([isOver, tooLong]);
  const answer = taken();
  socket.destroy();
  if (!answer) {
    if (giveUp.aborted) breaksByWaiting(sim, method, path);
    return undefined;
  }
  const { status, headers, body } = answer;
  return wholeAnswer(sim, method, path, new Response(body.toString(), { status, headers }));
}

async function writePieces(socket: ReturnType<typeof connect>, bytes: Buffer, { pauses, halfCloses }: Writing) {
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
