import type { Readable } from 'node:stream';

/**
 * Sends 100 to a client that waits for it, once the body begins to be read. If the head alone decides the response, the response is sent
 * before that, and the client need not send the body.
 */
export function continueWhenRead(
  request: Readable,
  response: { readonly headersSent: boolean; writeContinue(): void },
): void {
  const { _read: read } = request;
  let isSent = false;
  const send = () => {
    if (!isSent && !response.headersSent) response.writeContinue();
    isSent = true;
  };
  request._read = (size) => {
    request._read = read;
    send();
    read.call(request, size);
  };
  // Node never reads from a body that has already arrived, but closes the connection if 100 was not sent.
  request.once('end', send);
}
