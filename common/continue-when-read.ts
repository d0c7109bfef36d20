import type { Readable } from 'node:stream';

/**
 * Sends 100 to a client that waits for it before it sends its body, once somebody begins to read the body. An answer
 * that the head decides comes before, and then nobody needs the body.
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
  // Node reads nothing more of a body that has come whole, but ends the connection if 100 was not sent.
  request.once('end', send);
}
