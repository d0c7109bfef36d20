import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { HandlerContext } from '@connectrpc/connect';
import type { FastifyRequest } from 'fastify';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import type { CertificateSubject } from '../callers-file.ts';
import type { Caller } from '../domain/caller.ts';
import { Refusal } from '../domain/refusal.ts';
import { callOf } from './call.ts';
import { callerIfAny, refusalOf } from './caller-access.ts';
import type { Callers } from './callers.ts';
import { connectErrorOf } from './refusals.ts';
import type { RunCall } from './run-call.ts';

/** Who makes a request; undefined: nobody who may call. */
export type Identify = (request: FastifyRequest) => Caller | undefined;

/** Knows callers by what their requests present. */
export function identifier(callers: Callers): Identify {
  /** What was read of a certificate holds as long as its connection. */
  const subjects = new WeakMap<object, CertificateSubject | undefined>();
  return ({ headers, raw }) => {
    // Of HTTP/2, each stream has a stand-in of its own for the socket, which the session's is not.
    const socket = (raw as unknown as Partial<Http2ServerRequest>).stream?.session?.socket ?? raw.socket;
    if (!subjects.has(socket)) subjects.set(socket, subjectOf(socket as TLSSocket));
    return callers.of({ authorization: headers.authorization, certificateSubject: subjects.get(socket) });
  };
}

function subjectOf(socket: Partial<TLSSocket>): CertificateSubject | undefined {
  if (socket.authorized !== true) return undefined;
  return socket.getPeerCertificate?.().subject as CertificateSubject | undefined;
}

/** Whether a path belongs to a service that is open to callers without a token: probes carry no secrets. */
export const asksForHealth = (path: string): boolean => path.startsWith(`/${Health.typeName}/`);

/**
 * Lets in only known callers, each to the methods that are for it; to Health also those that present nothing. Who presents a
 * wrong token is to learn it from Health: it would be served nothing else. A call is turned away before its body is read.
 */
export function admitKnownCallers(run: RunCall): (context: HandlerContext) => Promise<void> {
  return async (context) => {
    const { service, method, requestHeader } = context;
    const caller = callerIfAny(context);
    if (service.typeName === Health.typeName) {
      // Not run as other calls are: nobody wants a line of each probe.
      if (!caller && requestHeader.has('authorization')) throw connectErrorOf(unknown());
      return;
    }
    const refusal = caller ? refusalOf(caller, method) : unknown();
    if (!refusal) return;
    await run(callOf(method, requestHeader, caller), async () => {
      throw refusal;
    });
  };
}

const unknown = () =>
  new Refusal('CALLER_UNAUTHENTICATED', 'The call carries no token that this service knows, and no such certificate.');
