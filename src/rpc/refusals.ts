import { create } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { type Status, StatusSchema } from '../../proto/gen/google/rpc/status_pb.ts';
import { Refusal, type RefusalReason } from '../domain/refusal.ts';
import { StoreUnavailable } from '../store/port/faults.ts';

/** The domain of this service's reasons in ErrorInfo. */
const DOMAIN = 'leadintake';

const CODES: Record<RefusalReason, Code> = {
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
  CALLER_FORBIDDEN: Code.PermissionDenied,
  DIRECTORY_LIMIT_REACHED: Code.FailedPrecondition,
  SCOPE_FORBIDDEN: Code.PermissionDenied,
  UPDATE_TIME_MISMATCH: Code.Aborted,
  CONSUMER_NOT_FOUND: Code.NotFound,
  CONSUMER_EXISTS: Code.AlreadyExists,
  NOT_A_TEST_STUDIO: Code.FailedPrecondition,
  CONSUMER_LIMIT_REACHED: Code.FailedPrecondition,
  STUDIO_ENDED: Code.FailedPrecondition,
};

/**
 * Converts a thrown value to the error that the caller gets: a refusal with its details, `unavailable` if the store is
 * unavailable or cannot know the outcome, and otherwise `internal` without details.
 */
export function toConnectError(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  if (error instanceof Refusal) return withDetails(error);
  return error instanceof StoreUnavailable
    ? new ConnectError('the store is unavailable', Code.Unavailable)
    : new ConnectError('internal error', Code.Internal);
}

/** Converts an error to the status of an item in a response. */
export function toStatus({ code, rawMessage, details }: ConnectError): Status {
  const outgoing = details.filter((detail) => 'desc' in detail);
  return create(StatusSchema, {
    code,
    message: rawMessage,
    details: outgoing.map(({ desc, value }) => anyPack(desc, create(desc, value))),
  });
}

function withDetails({ reason, message, metadata, faults }: Refusal): ConnectError {
  const info = { desc: ErrorInfoSchema, value: { reason, domain: DOMAIN, metadata } };
  const fieldViolations = faults.map(({ field, message }) => ({ field, description: message }));
  const badRequest = { desc: BadRequestSchema, value: { fieldViolations } };
  return new ConnectError(message, CODES[reason], undefined, faults.length > 0 ? [info, badRequest] : [info]);
}

export const unauthenticated = () => new Refusal('CALLER_UNAUTHENTICATED');

export const forbidden = (name: string | null, what: string): Refusal =>
  new Refusal('CALLER_FORBIDDEN', `The caller ${name} ${what}.`, { metadata: { caller: name ?? '' } });

/** The refusal that ends a stream whose caller is `withdrawn`. */
export const accessWithdrawn = (): Refusal =>
  new Refusal('CALLER_UNAUTHENTICATED', "The caller's credential was revoked, or its roles or studios have changed.");
