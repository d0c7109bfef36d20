import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { pageTokenFault, uuidFault } from '../../common/rules/field-rules.ts';
import { PAGE_SIZE } from '../../common/rules/public-api.ts';
import type { CoreClient, PageToRead } from '../core/core-client.ts';
import { type FaultyField, invalidRequest, Problem } from '../problems.ts';
import { hasScopeFor, type PresentedKey, type RequestState, type Sender, senderToCheck } from '../request.ts';
import { readAnyMediaType, readCapture, withHeaderFaults } from './read-capture.ts';
import { LEAD_PATH, LEADS_PATH } from './schemas.ts';

/** The three operations of the public contract. Callers are authenticated and counted before they run. */
export function leadRoutes(app: FastifyInstance, core: CoreClient, publicUrl: string): void {
  // The operation checks the media type and parses the body, so that all their faults are reported together.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  // A path without the host is right under any host name, and includes the prefix of a public URL.
  const leadsPath = new URL(publicUrl + LEADS_PATH).pathname;

  // @rule 4.1.created 4.1.replayed 4.1.existing-lead
  const create = {
    config: { operation: 'createLead' },
    preParsing: readAnyMediaType,
    errorHandler(error: FastifyError, request: FastifyRequest) {
      throw withHeaderFaults(error, request);
    },
  } as const;
  app.post(LEADS_PATH, create, async (request, reply) => {
    const { state } = request;
    const key = keyOf(state);
    const capture = readCapture(request);
    const created = await core.createLead(senderToCheck(key, request.id), capture).catch((error) => {
      if (hasScopeFor(key.caller, 'getLead') && error instanceof Problem && error.existingLeadId !== undefined) {
        reply.header('link', `<${publicUrl}${LEADS_PATH}/${error.existingLeadId}>; rel="existing-lead"`);
      }
      throw error;
    });
    const { value: body, leadId, replayed } = created;
    Object.assign(state, { leadId, replayed });
    if (replayed) reply.header('idempotent-replayed', 'true');
    reply.code(201).header('location', `${leadsPath}/${leadId}`);
    return asJson(reply, body);
  });

  // @rule 4.2.current-state 4.2.id
  app.get<{ Params: { id: string } }>(LEAD_PATH, { config: { operation: 'getLead' } }, async (request, reply) => {
    const { id } = request.params;
    const fault = uuidFault(id);
    if (fault !== undefined) throw invalidRequest([{ field: 'id', message: fault }]);
    request.state.leadId = id;
    return asJson(reply, await core.getLead(senderToCheck(keyOf(request.state), request.id), id));
  });

  // @rule 4.3.paging
  app.get<{ Querystring: QueryString }>(LEADS_PATH, { config: { operation: 'listLeads' } }, async (request, reply) => {
    const sender = senderToCheck(keyOf(request.state), request.id);
    return asJson(reply, await core.listLeads(sender, await readPage(request.query, core, sender)));
  });
}

/**
 * Returns the core's body unchanged, for the handler to return. A handler that returned the reply would make the
 * framework wait for its end, with a dozen listeners.
 */
function asJson(reply: FastifyReply, body: Uint8Array): Buffer {
  reply.type('application/json; charset=utf-8');
  // A copy, because a response that is not read would otherwise retain the whole message that its body came in.
  return Buffer.from(new Uint8Array(body).buffer);
}

/** A parameter that is given several times has a list of values. */
type QueryString = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Only the core can check a cursor, so a wrong limit is passed on with it, as one that the core refuses as well.
 *
 * @rule 2.5.together 4.3.limit 4.3.cursor 4.3.parameters 8.limit
 */
async function readPage({ limit, cursor }: QueryString, core: CoreClient, sender: Sender): Promise<PageToRead> {
  const faults: FaultyField[] = [];
  if (limit !== undefined && !isLimit(limit)) {
    faults.push({ field: 'limit', message: `must be given once, as a whole number from 1 to ${PAGE_SIZE.max}` });
  }
  const cursorFault = typeof cursor === 'string' ? pageTokenFault(cursor) : cursor && 'must be given once';
  if (cursorFault) faults.push({ field: 'cursor', message: cursorFault });
  else if (faults.length > 0 && typeof cursor === 'string') {
    const refusal = await core.listLeads(sender, { limit: NO_LIMIT, cursor }).catch((problem) => problem);
    if (!(refusal instanceof Problem) || refusal.code !== 'integration_invalid_request') throw refusal;
    faults.push(...refusal.faults.filter(({ field }) => field === 'cursor'));
  }
  if (faults.length > 0) throw invalidRequest(faults);
  return { limit: limit === undefined ? PAGE_SIZE.fallback : Number(limit), cursor: cursor as string | undefined };
}

/** A limit that the core refuses. */
const NO_LIMIT = -1;

function isLimit(limit: string | string[]): boolean {
  return typeof limit === 'string' && /^\d+$/.test(limit) && Number(limit) >= 1 && Number(limit) <= PAGE_SIZE.max;
}

/** Admission sets a key before any operation runs. */
const keyOf = ({ key }: RequestState): PresentedKey => key as PresentedKey;
