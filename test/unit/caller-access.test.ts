import type { DescMethod } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { ANY_CALLER } from '../../src/domain/caller.ts';
import { mayUse, refusalOf } from '../../src/rpc/caller-access.ts';
import { ALL_SERVICES } from '../../src/rpc/routes.ts';

const LISTED = ALL_SERVICES.filter(({ typeName }) => typeName !== Health.typeName);

test('each method of each service is for a role, but those of health, which are for all', () => {
  for (const method of LISTED.flatMap(({ methods }) => methods)) {
    expect([method.name, refusalOf(ANY_CALLER, method)]).toEqual([method.name, undefined]);
    expect(refusalOf({ ...ANY_CALLER, may: new Set() }, method)?.reason).toBe('CALLER_FORBIDDEN');
  }
});

test('a service, or a method, that the table of roles does not list is for no caller', () => {
  const [service] = LISTED;
  const unlisted = [
    { parent: { typeName: 'leadintake.v1.LaterService' }, name: 'ListLeads', localName: 'listLeads' },
    { parent: service, name: 'Later', localName: 'later' },
  ] as unknown as DescMethod[];
  for (const method of unlisted) expect(refusalOf(ANY_CALLER, method)?.reason).toBe('CALLER_FORBIDDEN');
  expect(mayUse(ANY_CALLER, 'leadintake.v1.LaterService')).toBe(false);
  expect(mayUse(ANY_CALLER, '')).toBe(true);
});
