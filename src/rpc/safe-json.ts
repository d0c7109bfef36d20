import { Code, ConnectError } from '@connectrpc/connect';

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * How messages in JSON are read. The library takes bytes that are no text for U+FFFD, and repeats a piece of what is no
 * JSON in its error, which callers write to their logs.
 */
export const safeJson = {
  ignoreUnknownFields: true,
  textDecoder: {
    decode(bytes: Uint8Array): string {
      try {
        const text = UTF8.decode(bytes);
        JSON.parse(text);
        return text;
      } catch {
        throw new ConnectError('the message must be JSON in UTF-8', Code.InvalidArgument);
      }
    },
  },
};
