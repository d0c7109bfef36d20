import { hash, timingSafeEqual } from 'node:crypto';
import type { HandlerContext } from '@connectrpc/connect';
import type { Secret } from '../../common/secret.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { Refusal } from '../domain/refusal.ts';
import { callOf } from './call.ts';
import { connectErrorOf } from './refusals.ts';
import type { RunCall } from './run-call.ts';

/** Whether an Authorization header carries the token; without a token, every one does. */
export type CarriesToken = (authorization: string | undefined) => boolean;

/** Knows the token of this service. */
export function tokenCheck(token: Secret | undefined): CarriesToken {
  const expected = token && sha256(`Bearer ${token.reveal()}`);
  // Equal lengths and a comparison that always takes the same time: no byte of the token can be measured.
  return (authorization = '') => !expected || timingSafeEqual(sha256(authorization), expected);
}

/** Whether a path belongs to a service that is open to callers without a token: probes carry no secrets. */
export const asksForHealth = (path: string): boolean => path.startsWith(`/${Health.typeName}/`);

/**
 * Lets in only callers that present the token, whoever they are otherwise; to Health also those that present none. Who presents
 * another is to learn it from Health: it would be served nothing else. A call is turned away before its body is read.
 */
export function authenticateCaller(
  carriesToken: CarriesToken,
  run: RunCall,
): (context: HandlerContext) => Promise<void> {
  return async ({ service, method, requestHeader }) => {
    const authorization = requestHeader.get('authorization') ?? undefined;
    if (carriesToken(authorization)) return;
    const refusal = new Refusal('CALLER_UNAUTHENTICATED', 'The call does not carry the token of this service.');
    if (service.typeName === Health.typeName) {
      if (authorization === undefined) return;
      // Not run as other calls are: nobody wants a line of each probe.
      throw connectErrorOf(refusal);
    }
    await run(callOf(method, requestHeader), async () => {
      throw refusal;
    });
  };
}

const sha256 = (text: string) => hash('sha256', text, 'buffer');
