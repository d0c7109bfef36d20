import { createHash, timingSafeEqual } from 'node:crypto';
import type { Interceptor } from '@connectrpc/connect';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { Refusal } from '../domain/refusal.ts';
import type { Secret } from '../runtime/secret.ts';

/**
 * Lets in only callers that present the token, whoever they are otherwise; without a token, everybody. Health is open:
 * probes carry no secrets.
 */
export function authenticateCaller(token: Secret | undefined): Interceptor {
  const expected = token && sha256(`Bearer ${token.reveal()}`);
  return (next) => (request) => {
    if (expected && request.service.typeName !== Health.typeName) {
      const presented = sha256(request.header.get('authorization') ?? '');
      // Equal lengths and a comparison that always takes the same time: no byte of the token can be measured.
      if (!timingSafeEqual(presented, expected)) {
        throw new Refusal('CALLER_UNAUTHENTICATED', 'The call does not carry the token of this service.');
      }
    }
    return next(request);
  };
}

const sha256 = (text: string) => createHash('sha256').update(text).digest();
