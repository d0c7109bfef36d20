import { Code, ConnectError, type Interceptor } from '@connectrpc/connect';
import type { FastifyBaseLogger } from 'fastify';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import type { RefusalReason as WireReason } from '../../proto/gen/leadintake/v1/refusal_pb.ts';
import { Refusal, type RefusalReason } from '../domain/refusal.ts';
import { StoreUnavailable } from '../store/store.ts';

/** What all reasons of this service belong to, in ErrorInfo. */
const DOMAIN = 'leadintake';

/** The status of every refusal. */
const CODES: Record<RefusalReason, Code> & Record<Exclude<keyof typeof WireReason, 'UNSPECIFIED'>, Code> = {
  INVALID_REQUEST: Code.InvalidArgument,
  SOURCE_INVALID: Code.FailedPrecondition,
  KEY_INVALID: Code.Unauthenticated,
  STUDIO_SUSPENDED: Code.PermissionDenied,
  ISSUER_FORBIDDEN: Code.PermissionDenied,
  LEAD_NOT_FOUND: Code.NotFound,
  IDEMPOTENCY_CONFLICT: Code.AlreadyExists,
  LEAD_ALREADY_OPEN: Code.AlreadyExists,
  STUDIO_NOT_FOUND: Code.NotFound,
  MEMBER_FORBIDDEN: Code.PermissionDenied,
  KEY_NOT_FOUND: Code.NotFound,
  KEY_LIMIT_REACHED: Code.FailedPrecondition,
  KEY_REVOKED: Code.FailedPrecondition,
  KEY_EXPIRED: Code.FailedPrecondition,
  CALLER_UNAUTHENTICATED: Code.Unauthenticated,
};

/**
 * Turns everything that is thrown into what a caller may see: a refusal with its details, `unavailable` when the store
 * is away or does not know, and a bare `internal` for the rest, whose text stays in the log.
 */
export function answerErrors(log: FastifyBaseLogger): Interceptor {
  return (next) => async (request) => {
    try {
      return await next(request);
    } catch (error) {
      if (error instanceof ConnectError) throw error;
      if (error instanceof Refusal) throw refused(error);
      const requestId = request.header.get('x-request-id') ?? undefined;
      log.error({ err: error, rpc: request.method.name, requestId }, 'a call failed');
      throw error instanceof StoreUnavailable
        ? new ConnectError('the store is not available', Code.Unavailable)
        : new ConnectError('internal error', Code.Internal);
    }
  };
}

function refused({ reason, message, metadata, faults }: Refusal): ConnectError {
  const info = { desc: ErrorInfoSchema, value: { reason, domain: DOMAIN, metadata } };
  const fieldViolations = faults.map(({ field, message }) => ({ field, description: message }));
  const badRequest = { desc: BadRequestSchema, value: { fieldViolations } };
  return new ConnectError(message, CODES[reason], undefined, faults.length > 0 ? [info, badRequest] : [info]);
}
