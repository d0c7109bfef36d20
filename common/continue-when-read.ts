import type { Readable } from 'node:stream';

/**
 * Sends 100 to a client that waits for it, once somebody begins to read the body. An answer that the head decides goes out before that, and
 * then nobody needs the body.
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
