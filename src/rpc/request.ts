import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';

/** A request and its response, over HTTP/1.1 or HTTP/2. */
export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** Returns the path of a request without its query. CONNECT has none. */
export const readPath = ({ url }: { readonly url?: string | undefined }): string => url?.split('?', 1)[0] ?? '';
