import { hash, timingSafeEqual } from 'node:crypto';
import type { HandlerContext } from '@connectrpc/connect';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { Refusal } from '../domain/refusal.ts';
import type { Secret } from '../runtime/secret.ts';
import { callOf, type RunCall } from './calls.ts';

/**
 * Lets in only callers that present the token, whoever they are otherwise; without a token, everybody. Health is open:
 * probes carry no secrets. A call is turned away before its body is read.
 */
export function authenticateCaller(
  token: Secret | undefined,
  run: RunCall,
): (context: HandlerContext) => Promise<void> {
  const expected = token && sha256(`Bearer ${token.reveal()}`);
  return async ({ service, method, requestHeader }) => {
    if (!expected || service.typeName === Health.typeName) return;
    const presented = sha256(requestHeader.get('authorization') ?? '');
    // Equal lengths and a comparison that always takes the same time: no byte of the token can be measured.
    if (timingSafeEqual(presented, expected)) return;
    await run(callOf(method, requestHeader), async () => {
      throw new Refusal('CALLER_UNAUTHENTICATED', 'The call does not carry the token of this service.');
    });
  };
}

const sha256 = (text: string) => hash('sha256', text, 'buffer');
