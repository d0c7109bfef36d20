import { expect, test } from 'vitest';
import { problemOfStatus } from '../../gateway/core-problems.ts';
import { Refusal } from '../../src/domain/refusal.ts';
import { connectErrorOf, statusOf } from '../../src/rpc/refusals.ts';

const problemOfFaults = (...fields: readonly string[]) => {
  const faults = fields.map((field) => ({ field, message: 'must be another' }));
  return problemOfStatus(
    statusOf(connectErrorOf(new Refusal('INVALID_REQUEST', 'The request is not valid.', { faults }))),
  );
};

test('what the core finds wrong with a request, its caller is told in the words of the public API', () => {
  expect(problemOfFaults('idempotencyKey', 'contact.email')).toMatchObject({
    code: 'integration_invalid_request',
    faults: [
      { field: 'Idempotency-Key', message: 'must be another' },
      { field: 'contact.value', message: 'must be another' },
    ],
  });
});

test.each(['studioId', 'secretSha256', 'request', 'items'])(
  'no caller is told to mend what the gateway sent: %s',
  (field) => {
    expect(problemOfFaults('displayName', field)).toMatchObject({ code: 'integration_unavailable', faults: [] });
  },
);
