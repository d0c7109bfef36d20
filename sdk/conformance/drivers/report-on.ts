import {
  check,
  createLeadIntakeClient,
  IdempotencyConflictError,
  type Lead,
  LeadAlreadyOpenError,
  type LeadCapture,
  type LeadIntakeClient,
  type LeadIntakeClientOptions,
  LeadIntakeError,
  ProblemError,
} from '../../index.ts';

/** A request of the suite; README.md documents it in full. */
export interface Request {
  readonly id: number;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly options: Pick<LeadIntakeClientOptions, 'deadlineMs' | 'attemptTimeoutMs'>;
  readonly call: 'createLead' | 'getLead' | 'listLeads' | 'allLeads' | 'check';
  readonly capture: LeadCapture;
  readonly captureAs?: keyof typeof MISTAKES;
  readonly isClosed?: true;
  readonly allowHttp?: true;
  readonly idempotencyKey?: string;
  readonly leadId: string;
  readonly limit?: number;
  readonly cursor?: string;
  readonly cancelAfterMs?: number;
  readonly callDeadlineMs?: number;
}

/** Values that JavaScript can pass as a lead, without a type checker. */
const MISTAKES = {
  nothing: undefined,
  text: 'Grace',
  list: [],
  'not-a-number': { note: Number.NaN },
  infinite: { note: Number.POSITIVE_INFINITY },
};

/** Fails. This must not change the result of a call. */
async function failing(): Promise<never> {
  throw new Error('the listener has failed');
}

/** Makes the call of a request and returns its report, in any runtime of JavaScript. */
export async function reportOn(request: Request): Promise<object> {
  const { baseUrl, apiKey, allowHttp = false } = request;
  const options = { ...request.options, allowHttp };
  if (request.isClosed) return { unsupported: 'a client cannot be closed' };
  if (request.call === 'check') return { result: await check({ baseUrl, apiKey, ...options }) };
  let client: LeadIntakeClient;
  try {
    client = createLeadIntakeClient({ baseUrl, apiKey, ...options, onAttempt: failing });
  } catch (error) {
    if (error instanceof TypeError) return { refused: error.message };
    throw error;
  }
  return await answer(client, request).then(
    (result) => ({ result }),
    (error) => (error instanceof TypeError ? { refused: error.message } : { error: describeError(error) }),
  );
}

async function answer(client: LeadIntakeClient, request: Request): Promise<object | undefined> {
  const { call, captureAs, leadId, cancelAfterMs, callDeadlineMs } = request;
  const capture = captureAs === undefined ? request.capture : (MISTAKES[captureAs] as unknown as LeadCapture);
  const signal = cancelAfterMs === 0 ? AbortSignal.abort() : cancelAfterMs && AbortSignal.timeout(cancelAfterMs);
  const { limit, cursor, idempotencyKey } = request;
  const options = {
    ...(signal && { signal }),
    ...(callDeadlineMs !== undefined && { deadlineMs: callDeadlineMs }),
    ...(limit !== undefined && { limit }),
    ...(cursor !== undefined && { cursor }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
  switch (call) {
    case 'createLead': {
      const { lead, replayed, idempotencyKey } = await client.createLead(capture, options);
      return { lead, replayed, idempotencyKey };
    }
    case 'getLead':
      return { lead: await client.getLead(leadId, options) };
    case 'listLeads':
      return client.listLeads(options);
    case 'allLeads': {
      const leads: Lead[] = [];
      for await (const lead of client.allLeads(options)) leads.push(lead);
      return { leads };
    }
  }
}

function describeError(error: unknown): object {
  if (!(error instanceof LeadIntakeError)) throw error;
  const { written, idempotencyKey, attempts, message } = error;
  const kind = findKind(error);
  if (!(error instanceof ProblemError)) return { kind, written, idempotencyKey, attempts, message };
  const { code, status, requestId, fields, retryAfterSeconds } = error;
  const existingLeadId = error instanceof LeadAlreadyOpenError ? error.existingLeadId : undefined;
  const problem = { code, status, requestId, fields, retryAfterSeconds, existingLeadId };
  return { kind, written, idempotencyKey, attempts, ...problem };
}

function findKind(error: LeadIntakeError): string {
  if (error instanceof LeadAlreadyOpenError) return 'lead-already-open';
  if (error instanceof IdempotencyConflictError) return 'idempotency-conflict';
  return error instanceof ProblemError ? 'problem' : 'no-answer';
}
