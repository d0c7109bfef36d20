import { createRegistry, type DescMessage, fromJsonString } from '@bufbuild/protobuf';
import { isFieldError } from '@bufbuild/protobuf/reflect';
import { Code, ConnectError } from '@connectrpc/connect';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';

const UTF8 = new TextDecoder('utf-8', { fatal: true });
/** Errors of items contain details of these types. */
const LENIENT = { ignoreUnknownFields: true, registry: createRegistry(ErrorInfoSchema, BadRequestSchema) };

/**
 * Returns the options for parsing a JSON message. The library replaces invalid UTF-8 with U+FFFD, and its errors quote
 * what they could not parse, which callers may log; both are refused here instead.
 */
export const safeJson = (message: DescMessage) => ({
  ...LENIENT,
  textDecoder: {
    decode(bytes: Uint8Array): string {
      try {
        const text = UTF8.decode(bytes);
        fromJsonString(message, text, LENIENT);
        return text;
      } catch (error) {
        const { cause } = Object(error) as Error;
        const where = isFieldError(cause) ? `: ${cause.field().name} is not` : '';
        throw new ConnectError(
          `the message must be JSON in UTF-8, in the form of the contract${where}`,
          Code.InvalidArgument,
        );
      }
    },
  },
});
