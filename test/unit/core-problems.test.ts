import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { problemOfError, problemOfStatus } from '../../gateway/core/core-problems.ts';
import type { FaultyField, ProblemCode } from '../../gateway/problems.ts';
import { StatusSchema } from '../../proto/gen/google/rpc/status_pb.ts';
import { RefusalReason } from '../../proto/gen/leadintake/v1/refusal_pb.ts';
import { Refusal } from '../../src/domain/refusal.ts';
import { toConnectError, toStatus } from '../../src/rpc/refusals.ts';

const toProblem = (...fields: readonly string[]) => {
  const faults = fields.map((field) => ({ field, message: 'must be another' }));
  return problemOfStatus(
    toStatus(toConnectError(new Refusal('INVALID_REQUEST', 'The request is not valid.', { faults }))),
  );
};

test('faults found by the core are reported with the field names of the public API', () => {
  expect(toProblem('idempotencyKey', 'contact.email')).toMatchObject({
    code: 'integration_invalid_request',
    faults: [
      { field: 'Idempotency-Key', message: 'must be another' },
      { field: 'contact.value', message: 'must be another' },
    ],
  });
});

// Released clients take any other name for a field of the data.
test('faulty parts of a request outside its data have names from a closed list', () => {
  // @ts-expect-error: the lists do not have this name.
  expect<FaultyField['field']>('X-New').not.toBe('');
});

// @proves exchange-7
test.each(['studioId', 'secretSha256', 'request', 'items'])(
  "a fault of the gateway is not reported as the caller's fault: %s",
  (field) => {
    expect(toProblem('displayName', field)).toMatchObject({ code: 'integration_unavailable', faults: [] });
  },
);

/** The problem for each code that a core, or a proxy in front of it, returns without a reason. */
const WITHOUT_REASON: Readonly<Record<keyof typeof Code, ProblemCode>> = {
  Canceled: 'integration_unavailable',
  Unknown: 'integration_unavailable',
  InvalidArgument: 'internal_error',
  DeadlineExceeded: 'integration_unavailable',
  NotFound: 'integration_unavailable',
  AlreadyExists: 'integration_unavailable',
  PermissionDenied: 'integration_unavailable',
  ResourceExhausted: 'integration_unavailable',
  FailedPrecondition: 'integration_unavailable',
  Aborted: 'integration_unavailable',
  OutOfRange: 'integration_unavailable',
  Unimplemented: 'integration_unavailable',
  Internal: 'internal_error',
  Unavailable: 'integration_unavailable',
  DataLoss: 'integration_unavailable',
  Unauthenticated: 'integration_unavailable',
};

test.each(Object.entries(WITHOUT_REASON))('a call or an item that ends with %s becomes %s', (name, code) => {
  const status = Code[name as keyof typeof Code];
  for (const problem of [
    problemOfError(new ConnectError('', status)),
    problemOfStatus(create(StatusSchema, { code: status })),
  ]) {
    expect(problem).toMatchObject({ code });
    if (problem.status === 503) expect(problem.headers).toHaveProperty('retry-after', '1');
  }
});

/** The reasons that only methods for other callers return. */
const UNUSED_BY_GATEWAYS = [
  ...['STUDIO_NOT_FOUND', 'MEMBER_FORBIDDEN', 'KEY_NOT_FOUND', 'KEY_LIMIT_REACHED', 'KEY_REVOKED', 'KEY_EXPIRED'],
  ...['DIRECTORY_LIMIT_REACHED', 'UPDATE_TIME_MISMATCH', 'CONSUMER_NOT_FOUND', 'CONSUMER_EXISTS'],
  ...['CONSUMER_LIMIT_REACHED', 'NOT_A_TEST_STUDIO'],
];

test('no reason that a gateway may get becomes an internal error', () => {
  const reasons = Object.keys(RefusalReason).filter((name) => Number.isNaN(Number(name)) && name !== 'UNSPECIFIED');
  const internal = reasons.filter((reason) => {
    const error = toConnectError(new Refusal(reason as ConstructorParameters<typeof Refusal>[0]));
    const { code } = problemOfError(error);
    expect(problemOfStatus(toStatus(error)).code).toBe(code);
    return code === 'internal_error';
  });
  expect(internal.toSorted()).toEqual(UNUSED_BY_GATEWAYS.toSorted());
});
