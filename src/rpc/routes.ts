import {
  createRegistry,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromJsonString,
  type JsonValue,
} from '@bufbuild/protobuf';
import { isFieldError } from '@bufbuild/protobuf/reflect';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, type ConnectRouter, type MethodImpl, type ServiceImpl } from '@connectrpc/connect';
import { MAX_CALL_MS, MAX_EXPORT_MS } from '../../common/deadlines.ts';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { AuditService } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { ConsumerService } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { RequestLogService } from '../../proto/gen/leadintake/v1/request_log_pb.ts';
import { bearerAuthenticator } from '../usecases/authenticate-api-key.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import { auditService } from './audit-service.ts';
import { consumerService } from './consumer-service.ts';
import { type ExchangeContext, exchangeService } from './exchange-service.ts';
import { healthService, type Serving } from './health-service.ts';
import { leadIntakeService } from './lead-intake-service.ts';
import { reflectionService } from './reflection-service.ts';
import { requestLogService } from './request-log-service.ts';
import type { RunCall } from './run-call.ts';
import { apiKeyService, directoryService } from './studio-services.ts';

/** The maximum size of a message with a list; bytes. A hundred of the largest leads have about 1 MB. */
const MAX_BATCH_BYTES = 1024 * 1024;

const SERVICES = [
  LeadIntakeService,
  ConsumerService,
  ExchangeService,
  ApiKeyService,
  DirectoryService,
  AuditService,
  RequestLogService,
];

/** The services of the contract, and the standard ones. */
export const ALL_SERVICES: readonly DescService[] = [...SERVICES, Health, ServerReflection];

const formatMethodPath = ({ parent, name }: DescMethod) => `/${parent.typeName}/${name}`;

/** The path of gateways' calls. */
export const EXCHANGE_PATH = formatMethodPath(ExchangeService.method.exchange);

const BIDI_STREAM_PATHS = new Set(
  ALL_SERVICES.flatMap(({ methods }) => methods)
    .filter(({ methodKind }) => methodKind === 'bidi_streaming')
    .map(formatMethodPath),
);

/** Returns the properties of the method at a path with which the port limits its calls. */
export const describePath = (path: string) => ({
  isProbe: path.startsWith(`/${Health.typeName}/`),
  isWatch: path === formatMethodPath(Health.method.watch),
  isOpenEnded: BIDI_STREAM_PATHS.has(path),
});

/** The dependencies of the services besides those of the use cases. */
interface RouteContext {
  readonly run: RunCall;
  readonly batchReceived: ExchangeContext['batchReceived'];
  readonly serving: Serving;
  readonly reflects: boolean;
}

/** Returns a function that registers all methods, and the implementation of the exchange. */
export function servedMethods(deps: Dependencies, { run, batchReceived, serving, reflects }: RouteContext) {
  const items = { run, batchReceived, authenticate: bearerAuthenticator(deps), ending: serving.ending };
  const names = SERVICES.map((service) => service.typeName);
  const exchange = exchangeService(deps, items);
  const routes = (router: ConnectRouter) => {
    serve(router, LeadIntakeService, leadIntakeService(deps, items));
    serve(router, ConsumerService, consumerService(deps));
    serve(router, ExchangeService, exchange);
    serve(router, ApiKeyService, apiKeyService(deps, items.authenticate));
    serve(router, DirectoryService, directoryService(deps));
    serve(router, AuditService, auditService(deps, items));
    serve(router, RequestLogService, requestLogService(deps));
    serve(router, Health, healthService(names, serving));
    if (reflects) serve(router, ServerReflection, reflectionService(ALL_SERVICES, serving.ending));
  };
  return { routes, exchange: { implement: exchange.exchange, readMaxBytes: MAX_BATCH_BYTES } };
}

/** Returns the maximum deadline of a method; milliseconds. Exports take hours. */
export const findMaxTimeoutMs = ({ methodKind }: DescMethod): number =>
  methodKind === 'server_streaming' ? MAX_EXPORT_MS : MAX_CALL_MS;

/** Returns the limits of a method that differ from the defaults. Messages with a list of messages may be larger. */
const findBounds = ({ input }: DescMethod) =>
  input.fields.some(({ fieldKind, message }) => fieldKind === 'list' && message)
    ? { readMaxBytes: MAX_BATCH_BYTES }
    : undefined;

function serve<Service extends DescService>(router: ConnectRouter, service: Service, impl: ServiceImpl<Service>): void {
  for (const method of service.methods) {
    const implementation = impl[method.localName as keyof typeof impl] as MethodImpl<typeof method>;
    router.rpc(method, implementation, { ...findBounds(method), jsonOptions: safeJson(method.input) });
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });
/** Errors of items contain details of these types. */
const LENIENT = { ignoreUnknownFields: true, registry: createRegistry(ErrorInfoSchema, BadRequestSchema) };

/**
 * Returns the options for parsing a JSON message. The library would replace invalid UTF-8 with U+FFFD, and its errors
 * would quote unreadable input, which callers may log. Both are refused here instead.
 */
export const safeJson = (message: DescMessage) => ({
  ...LENIENT,
  textDecoder: {
    decode(bytes: Uint8Array): string {
      try {
        const text = UTF8.decode(bytes);
        fromJsonString(message, text, LENIENT);
        const field = misreadField(message, JSON.parse(text));
        if (field) throw unreadable(field.name);
        return text;
      } catch (error) {
        if (error instanceof ConnectError) throw error;
        const { cause } = Object(error) as Error;
        throw unreadable(isFieldError(cause) ? cause.field().name : undefined);
      }
    },
  },
});

function unreadable(field: string | undefined): ConnectError {
  const where = field ? `: ${field} is not` : '';
  return new ConnectError(
    `the message must be JSON in UTF-8, in the form of the contract${where}`,
    Code.InvalidArgument,
  );
}

/**
 * Returns a field that the library would misread. It skips unknown words of enums, so a filter of unknown stages would
 * match every lead. It moves an invalid day, and the hour 24, to the next day.
 */
function misreadField(message: DescMessage, json: JsonValue): DescField | undefined {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return undefined;
  for (const field of message.fields) {
    const { enum: words, message: inner } = field;
    for (const value of [json[field.jsonName], json[field.name]].flat()) {
      if (typeof value === 'string') {
        if (words && !words.values.some(({ name }) => name === value)) return field;
        if (inner?.typeName === TimestampSchema.typeName && isMoved(value)) return field;
      }
      const within = inner && value !== undefined && misreadField(inner, value);
      if (within) return within;
    }
  }
  return undefined;
}

/** @param time a time that the library could read */
function isMoved(time: string): boolean {
  const day = time.slice(0, 10);
  return time.includes('T24') || !new Date(day).toISOString().startsWith(day);
}
