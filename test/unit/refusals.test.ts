import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Code } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { RefusalReason } from '../../proto/gen/leadintake/v1/refusal_pb.ts';
import { type RefusalReason as Reason, Refusal } from '../../src/domain/refusal.ts';
import { toConnectError } from '../../src/rpc/refusals.ts';
import { ROOT } from '../tools/processes.ts';

test('each refusal has the status in its comment in refusal.proto', () => {
  const proto = readFileSync(join(ROOT, 'proto/leadintake/v1/refusal.proto'), 'utf8');
  const written = [...proto.matchAll(/\((\w+)\)\n +REFUSAL_REASON_(\w+) = /g)].map(([, status, reason = '']) => [
    reason,
    status,
  ]);
  const findStatus = (reason: string) => Code[toConnectError(new Refusal(reason as Reason)).code] ?? '';
  const sent = Object.keys(RefusalReason)
    .filter((reason) => reason !== 'UNSPECIFIED' && Number.isNaN(Number(reason)))
    .map((reason) => [
      reason,
      findStatus(reason)
        .replaceAll(/\B[A-Z]/g, '_$&')
        .toLowerCase(),
    ]);
  expect(written).toEqual(sent);
});
