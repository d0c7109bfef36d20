import { Code, ConnectError } from '@connectrpc/connect';

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The options for parsing JSON messages. The library replaces invalid UTF-8 with U+FFFD, and quotes part of invalid
 * JSON in its error, which callers may log; both are refused here instead.
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
