import type { DescMethod } from '@bufbuild/protobuf';
import { Code, type Interceptor } from '@connectrpc/connect';
import type { FastifyBaseLogger } from 'fastify';
import { Refusal } from '../domain/refusal.ts';
import { isRequestId } from '../runtime/request-id.ts';
import { connectErrorOf } from './refusals.ts';

/** A request of a caller: a call of its own, or one of a batch. */
export interface Call {
  /** `SERVICE/METHOD`. */
  readonly rpc: string;
  /** What its caller names it; whatever is no fit name stays out of the log. */
  readonly requestId: string | undefined;
}

/**
 * Runs what a caller asked for. Writes one line: which, how it ended, how long it took; never what it carried. Rejects with
 * what the caller may see; the text of a fault stays in the log.
 */
export type RunCall = <Answer>(call: Call, body: () => Promise<Answer>) => Promise<Answer>;

/** Runs calls on behalf of a log. */
export function callRunner(log: FastifyBaseLogger): RunCall {
  return async ({ rpc, requestId: given }, body) => {
    const requestId = isRequestId(given) ? given : undefined;
    const started = performance.now();
    let outcome = 'ok';
    try {
      return await body();
    } catch (thrown) {
      const error = connectErrorOf(thrown);
      outcome = Code[error.code];
      const isFault = error !== thrown && !(thrown instanceof Refusal);
      if (isFault) log.error({ err: thrown, rpc, requestId }, 'a call failed');
      throw error;
    } finally {
      log.info({ rpc, outcome, durationMs: Math.round(performance.now() - started), requestId });
    }
  };
}

/** Runs every call of the server but batches, which run each request that they carry. */
export function runCalls(run: RunCall): Interceptor {
  return (next) => (request) =>
    request.stream ? next(request) : run(callOf(request.method, request.header), () => next(request));
}

/** What a call is, by its method and headers. */
export function callOf(method: DescMethod, header: Headers): Call {
  return { rpc: nameOf(method), requestId: header.get('x-request-id') ?? undefined };
}

export const nameOf = (method: DescMethod): string => `${method.parent.typeName}/${method.name}`;
