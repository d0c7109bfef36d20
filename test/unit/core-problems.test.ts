import { expect, test } from 'vitest';
import { problemOfStatus } from '../../gateway/core/core-problems.ts';
import { Refusal } from '../../src/domain/refusal.ts';
import { connectErrorOf, statusOf } from '../../src/rpc/refusals.ts';

const problemOfFaults = (...fields: readonly string[]) => {
  const faults = fields.map((field) => ({ field, message: 'must be another' }));
  return problemOfStatus(
    statusOf(connectErrorOf(new Refusal('INVALID_REQUEST', 'The request is not valid.', { faults }))),
  );
};

test('faults found by the core are reported with the field names of the public API', () => {
  expect(problemOfFaults('idempotencyKey', 'contact.email')).toMatchObject({
    code: 'integration_invalid_request',
    faults: [
      { field: 'Idempotency-Key', message: 'must be another' },
      { field: 'contact.value', message: 'must be another' },
    ],
  });
});

// @proves exchange-7
test.each(['studioId', 'secretSha256', 'request', 'items'])(
  'a fault of the gateway is not reported as the fault of the caller: %s',
  (field) => {
    expect(problemOfFaults('displayName', field)).toMatchObject({ code: 'integration_unavailable', faults: [] });
  },
);
