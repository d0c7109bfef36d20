import { Code, ConnectError } from '@connectrpc/connect';
import { BrokenInvariant } from '../../common/invariants.ts';
import { CONTACT_TYPES } from '../../common/rules/field-rules.ts';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import type { Status } from '../../proto/gen/google/rpc/status_pb.ts';
import { CODE_OF_REASON, type DataPath, type FaultyField, OVERLOADED, Problem, type ProblemCode } from '../problems.ts';
import { TooManyPending } from './exchange-batcher.ts';

/**
 * The codes of errors without a reason by which the core reports a bug, its own or the gateway's. After any other code, the outcome is
 * unknown or nothing was begun.
 *
 * @rule 7.internal_error 7.integration_unavailable 7.unknown-outcome
 */
const FAULTS = new Set([Code.Internal, Code.InvalidArgument]);

/** Returns the problem for a failed call to the core, whatever the cause. */
export function problemOfError(thrown: unknown): Problem {
  if (thrown instanceof BrokenInvariant) return new Problem('internal_error', { cause: thrown });
  if (thrown instanceof TooManyPending) return OVERLOADED;
  const error = ConnectError.from(thrown);
  return toCoreProblem(error, isFromCore(error) && FAULTS.has(error.code));
}

/** Returns whether the core itself sent an error. If a call is cut off, the error has a cause, and may be `internal`, too. */
const isFromCore = ({ cause }: ConnectError): boolean => cause === undefined;

/** Codes of calls that were late or cut off, or that may succeed with another token. */
const PASSING = new Set([Code.Canceled, Code.Aborted, Code.Unavailable, Code.DeadlineExceeded, Code.Unauthenticated]);

/** Returns whether a core has refused a call, and would refuse it again. */
export function isRefusedByCore(thrown: unknown): boolean {
  const error = ConnectError.from(thrown);
  return isFromCore(error) && !PASSING.has(error.code);
}

/** Returns the problem for a request whose failure the core reported within a batch. */
export function problemOfStatus({ code, message, details }: Status): Problem {
  const error = new ConnectError(message, code);
  error.details = details.map(({ typeUrl, value }) => ({ type: typeUrl.slice(typeUrl.lastIndexOf('/') + 1), value }));
  return toCoreProblem(error, FAULTS.has(code));
}

const CODES = new Map<string, ProblemCode>(Object.entries(CODE_OF_REASON));

function toCoreProblem(error: ConnectError, isFault: boolean): Problem {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === 'leadintake');
  const code = CODES.get(info?.reason ?? '');
  if (code === undefined) {
    return new Problem(isFault ? 'internal_error' : 'integration_unavailable', { cause: error });
  }
  const faults = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations.map(publicFault));
  // Callers do not send these fields, so gateway and core are incompatible, for example while one of them is updated.
  if (faults.some(({ field }) => OWN_FIELDS.has(field)))
    return new Problem('integration_unavailable', { cause: error });
  const { leadId: existingLeadId, erased } = info?.metadata ?? {};
  return new Problem(code, { faults, existingLeadId, detail: erased === 'true' ? ERASED : undefined, cause: error });
}

/** The detail of a conflict with the idempotency key of an erased lead. */
const ERASED = 'The lead that was created with this Idempotency-Key was erased since. Nothing was written.';

/** Fields that the gateway sets, not the caller. */
const OWN_FIELDS = new Set(['studioId', 'secretSha256', 'request', 'items']);

/** The public names of fields that the core names differently. */
const PUBLIC_NAMES: Readonly<Record<string, FaultyField['field']>> = {
  idempotencyKey: 'Idempotency-Key',
  ...Object.fromEntries(CONTACT_TYPES.map((type) => [`contact.${type}`, 'contact.value' as DataPath])),
  leadId: 'id',
  pageSize: 'limit',
  pageToken: 'cursor',
};

function publicFault({ field, description }: { field: string; description: string }): FaultyField {
  return { field: PUBLIC_NAMES[field] ?? (field as DataPath), message: description };
}
