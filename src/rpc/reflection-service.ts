import { createRegistry, type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, type ServiceImpl } from '@connectrpc/connect';
import { file_google_rpc_error_details } from '../../proto/gen/google/rpc/error_details_pb.ts';
import type { ServerReflection, ServerReflectionRequest } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { takeUntil } from './take-until.ts';

/**
 * Implements the standard reflection (`grpc.reflection.v1`) for tools such as grpcurl. It includes the types of error
 * details, which tools could otherwise only show as bytes.
 *
 * @param ending aborts when the server stops
 */
export function reflectionService(
  services: readonly DescService[],
  ending: AbortSignal,
): ServiceImpl<typeof ServerReflection> {
  const files = new Map(
    [...services.map(({ file }) => file), file_google_rpc_error_details]
      .flatMap(withDependencies)
      .map((file) => [`${file.name}.proto`, file]),
  );
  const registry = createRegistry(...files.values());

  function respond({ messageRequest: { case: kind, value } }: ServerReflectionRequest) {
    switch (kind) {
      case 'listServices':
        return {
          case: 'listServicesResponse',
          value: { service: services.map(({ typeName }) => ({ name: typeName })) },
        } as const;
      case 'fileByFilename':
        return describeFile(files.get(value));
      case 'fileContainingSymbol':
        // A method or field is in the file of its service or message.
        return describeFile((registry.get(value) ?? registry.get(value.replace(/\.[^.]*$/, '')))?.file);
      default:
        return failed(Code.Unimplemented, 'extensions are not supported');
    }
  }

  return {
    async *serverReflectionInfo(requests) {
      for await (const request of takeUntil(ending, requests)) {
        yield { validHost: request.host, originalRequest: request, messageResponse: respond(request) };
      }
    },
  };
}

function withDependencies(file: DescFile): DescFile[] {
  return [file, ...file.dependencies.flatMap(withDependencies)];
}

function describeFile(file: DescFile | undefined) {
  if (!file) return failed(Code.NotFound, 'no such file or symbol');
  const files = [...new Set(withDependencies(file))];
  return {
    case: 'fileDescriptorResponse',
    value: { fileDescriptorProto: files.map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto)) },
  } as const;
}

function failed(errorCode: Code, errorMessage: string) {
  return { case: 'errorResponse', value: { errorCode, errorMessage } } as const;
}
