import type { ClientHttp2Stream } from 'node:http2';
import { Http2SessionManager } from '@connectrpc/connect-node';

/**
 * The connections to a core, made anew when the core closes one.
 *
 * A core that stops says so first. Where no call is under way connect-node then ends the connection with an error, and listens for
 * that no more once the next call comes: it would end the process (connectrpc/connect-es#1768).
 */
export class CoreSessions extends Http2SessionManager {
  override async request(...call: Parameters<Http2SessionManager['request']>): Promise<ClientHttp2Stream> {
    const stream = await super.request(...call);
    const { session } = stream;
    if (session && !session.listeners('error').includes(told)) session.on('error', told);
    return stream;
  }
}

/** Whoever has a call under way is told of the error by that. */
const told = () => {};
