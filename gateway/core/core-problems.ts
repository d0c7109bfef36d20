import { Code, ConnectError } from '@connectrpc/connect';
import { BrokenInvariant } from '../../common/invariants.ts';
import { CONTACT_TYPES } from '../../common/rules/field-rules.ts';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import type { Status } from '../../proto/gen/google/rpc/status_pb.ts';
import { CODE_OF_REASON, type DataPath, type FaultyField, OVERLOADED, Problem } from '../problems.ts';
import { TooManyPending } from './exchange-batcher.ts';

/**
 * The codes by which the core reports, without a reason, a fault on either side. After any other code the outcome is
 * unknown, or nothing was begun.
 *
 * @rule 7.internal_error 7.integration_unavailable 7.unknown-outcome
 */
const FAULTS = new Set([Code.Internal, Code.InvalidArgument]);

/** Returns the problem for a failed call to the core, whatever the cause. */
export function problemOfError(thrown: unknown): Problem {
  if (thrown instanceof BrokenInvariant) return new Problem('internal_error', { cause: thrown });
  if (thrown instanceof TooManyPending) return OVERLOADED;
  const error = ConnectError.from(thrown);
  // An error with a cause does not come from the core: a call that is cut off is reported as internal too.
  return toCoreProblem(error, error.cause === undefined && FAULTS.has(error.code));
}

/** The codes of a call whose connection ends or that is late, and of one that the next token may get through. */
const PASSING = new Set([Code.Canceled, Code.Aborted, Code.Unavailable, Code.DeadlineExceeded, Code.Unauthenticated]);

/** Whether a core has refused a call, and would again. An error with a cause does not come from it. */
export function isRefusedByCore(thrown: unknown): boolean {
  const { code, cause } = ConnectError.from(thrown);
  return cause === undefined && !PASSING.has(code);
}

/** Returns the problem for a request whose failure the core reported within a batch. */
export function problemOfStatus({ code, message, details }: Status): Problem {
  const error = new ConnectError(message, code);
  error.details = details.map(({ typeUrl, value }) => ({ type: typeUrl.slice(typeUrl.lastIndexOf('/') + 1), value }));
  return toCoreProblem(error, FAULTS.has(code));
}

function toCoreProblem(error: ConnectError, isFault: boolean): Problem {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === 'leadintake');
  const code = Object.hasOwn(CODE_OF_REASON, info?.reason ?? '')
    ? CODE_OF_REASON[info?.reason as keyof typeof CODE_OF_REASON]
    : undefined;
  if (code === undefined) {
    return new Problem(isFault ? 'internal_error' : 'integration_unavailable', { cause: error });
  }
  const faults = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations.map(publicFault));
  // Callers do not send these fields: gateway and core are incompatible, as during an update of one of them.
  if (faults.some(({ field }) => OWN_FIELDS.has(field)))
    return new Problem('integration_unavailable', { cause: error });
  const detail = info?.metadata.erased === 'true' ? ERASED : undefined;
  return new Problem(code, {
    faults,
    existingLeadId: info?.metadata.leadId,
    ...(detail !== undefined && { detail }),
    cause: error,
  });
}

/** The detail of a conflict with a key whose lead was erased. */
const ERASED = 'The lead that was created with this Idempotency-Key was erased since. Nothing was written.';

/** Fields that the gateway sets, not its caller. */
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
