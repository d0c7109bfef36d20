import { Code, ConnectError } from '@connectrpc/connect';
import { BadRequestSchema, ErrorInfoSchema } from '../proto/gen/google/rpc/error_details_pb.ts';
import type { Status } from '../proto/gen/google/rpc/status_pb.ts';
import { CODE_OF_REASON, type FaultyField, Problem } from './problems.ts';

/**
 * What the core itself may say, without a reason, of a fault on either side. After anything else the outcome is unknown, or
 * nothing was begun: a core that does not know the exchange is of an earlier release.
 *
 * @rule 7.internal_error 7.integration_unavailable 7.unknown-outcome
 */
const FAULTS = new Set([Code.Internal, Code.InvalidArgument, Code.Unauthenticated]);

/** What the caller is to be told of a call to the core that failed, whatever it was that failed. */
export function problemOfError(thrown: unknown): Problem {
  const error = ConnectError.from(thrown);
  // What has a cause was not said by the core: a call that is cut off is called internal too.
  return problemOf(error, error.cause === undefined && FAULTS.has(error.code));
}

/** What the caller is to be told of a request that failed within a batch: the core said it. */
export function problemOfStatus({ code, message, details }: Status): Problem {
  const error = new ConnectError(message, code);
  error.details = details.map(({ typeUrl, value }) => ({ type: typeUrl.slice(typeUrl.lastIndexOf('/') + 1), value }));
  return problemOf(error, FAULTS.has(code));
}

function problemOf(error: ConnectError, isFault: boolean): Problem {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === 'leadintake');
  const code = Object.hasOwn(CODE_OF_REASON, info?.reason ?? '')
    ? CODE_OF_REASON[info?.reason as keyof typeof CODE_OF_REASON]
    : undefined;
  if (code === undefined) {
    return new Problem(isFault ? 'internal_error' : 'integration_unavailable', { cause: error });
  }
  const faults = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations.map(publicFault));
  // No caller sends these: gateway and core do not understand each other, as while one of them is updated.
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

/** What there is to say of a key whose lead was erased, besides that it is taken. */
const ERASED = 'The lead that was created with this Idempotency-Key was erased since. Nothing was written.';

/** What of a request is the gateway's own. */
const OWN_FIELDS = new Set(['studioId', 'secretSha256', 'request', 'items']);

/** What the core calls by one name and the public API by another. */
const PUBLIC_NAMES: Readonly<Record<string, string>> = {
  idempotencyKey: 'Idempotency-Key',
  'contact.email': 'contact.value',
  'contact.phone': 'contact.value',
  leadId: 'id',
  pageSize: 'limit',
  pageToken: 'cursor',
};

function publicFault({ field, description }: { field: string; description: string }): FaultyField {
  return { field: PUBLIC_NAMES[field] ?? field, message: description };
}
