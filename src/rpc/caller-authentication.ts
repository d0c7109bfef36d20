import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { HandlerContext } from '@connectrpc/connect';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import type { CertificateSubject } from '../callers-file.ts';
import type { Caller } from '../domain/caller.ts';
import { callOf } from './call.ts';
import { callerIfAny, refusalOf } from './caller-access.ts';
import type { Callers } from './callers.ts';
import type { RunCall } from './observation.ts';
import { connectErrorOf, unauthenticated } from './refusals.ts';

/** Returns the caller of a request; undefined: not authenticated. */
export type Identify = (request: IncomingMessage | Http2ServerRequest) => Caller | undefined;

/** Identifies callers by the token or certificate of their requests. */
export function callerIdentifier(callers: Callers): Identify {
  /** The certificate subjects by socket: a certificate does not change during a connection. */
  const subjects = new WeakMap<object, CertificateSubject | undefined>();
  return (request) => {
    const { headers, rawHeaders } = request;
    // In HTTP/2, `request.socket` is a proxy object per stream; the session's socket is the same for all streams.
    const socket = ('stream' in request ? request.stream.session?.socket : undefined) ?? request.socket;
    if (!subjects.has(socket)) subjects.set(socket, subjectOf(socket as TLSSocket));
    // Node takes the first of several, a proxy in front may have checked another one.
    const isAmbiguous = rawHeaders.filter((name, at) => at % 2 === 0 && /^authorization$/i.test(name)).length > 1;
    const authorization = isAmbiguous ? '' : headers.authorization;
    return callers.of({ authorization, certificateSubject: subjects.get(socket) });
  };
}

function subjectOf(socket: Partial<TLSSocket>): CertificateSubject | undefined {
  if (socket.authorized !== true) return undefined;
  return socket.getPeerCertificate?.().subject as CertificateSubject | undefined;
}

/**
 * Admits authenticated callers to the methods that their roles allow, and callers without a token to Health. Health
 * refuses a wrong token, too. A call is refused before its body is read.
 */
export function admitKnownCallers(run: RunCall): (context: HandlerContext) => Promise<void> {
  return async (context) => {
    const { service, method, requestHeader } = context;
    const caller = callerIfAny(context);
    if (service.typeName === Health.typeName) {
      // Without `run`: probes are not logged.
      if (!caller && requestHeader.has('authorization')) throw connectErrorOf(unauthenticated());
      return;
    }
    const refusal = caller ? refusalOf(caller, method) : unauthenticated();
    if (!refusal) return;
    await run(callOf(method, requestHeader, caller), async () => {
      throw refusal;
    });
  };
}
