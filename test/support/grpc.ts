import { AssertionError } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition, type MethodDefinition } from '@grpc/proto-loader';
import type { Running } from '../../common/run-until-stopped.ts';
import type { Environment } from '../../common/settings.ts';
import { startCore } from '../../src/app.ts';
import { readCoreConfig } from '../../src/config.ts';
import { newId } from '../../src/domain/new-id.ts';

/** The token of a core under test. */
export const CORE_TOKEN = 'the-token-of-the-tests-of-the-core';

/** A core in this process, on a free port and a temporary database. */
export interface TestCore extends Running {
  readonly port: number;
  /** The database file. */
  readonly path: string;
}

/** Starts a core. `env` overrides the settings that tests use by default. The caller must stop it. */
export async function startTestCore(env: Environment = {}): Promise<TestCore> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
  const path = join(folder, 'leads.db');
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const core = await startCore(
      readCoreConfig({
        CORE_PORT: '0',
        CORE_TOKEN,
        DATABASE_URL: `sqlite:${path}`,
        LOG_LEVEL: 'silent',
        SHUTDOWN_DRAIN_MS: '0',
        ...env,
      }),
    );
    const stop = async () => {
      await core.stop();
      remove();
    };
    return { ...core, stop, port: Number(new URL(core.url).port), path };
  } catch (error) {
    remove();
    throw error;
  }
}

const MODULES = join(import.meta.dirname, '../../node_modules');

// These tests read the .proto files with another protobuf implementation than the product.
const definitions = loadSync(
  [
    'leadintake/v1/lead_intake.proto',
    'leadintake/v1/exchange.proto',
    'leadintake/v1/api_key.proto',
    'leadintake/v1/directory.proto',
    'leadintake/v1/audit.proto',
    'leadintake/v1/consumer.proto',
    'leadintake/v1/request_log.proto',
    'health/v1/health.proto',
    'google/rpc/status.proto',
    'google/rpc/error_details.proto',
  ],
  {
    includeDirs: [
      join(import.meta.dirname, '../../proto'),
      join(MODULES, 'grpc-health-check/proto'),
      join(MODULES, 'google-proto-files'),
    ],
    longs: Number,
    enums: String,
    defaults: true,
  },
);

type Method = MethodDefinition<object, object>;
type Decoder = MessageTypeDefinition<object, object>;

/** Every RPC of the contract, as `Service/Method`. */
export const CONTRACT_RPCS: readonly string[] = Object.entries(definitions)
  .filter(([name, definition]) => name.startsWith('leadintake.') && !('format' in definition))
  .flatMap(([name, definition]) => Object.keys(definition).map((method) => `${name}/${method}`))
  .map((rpc) => rpc.replace('leadintake.v1.', ''));

function findMethod(rpc: string): Method {
  const [service = '', method = ''] = rpc.split('/');
  const found = definitions[service.includes('.') ? service : `leadintake.v1.${service}`] ?? {};
  return (found as Record<string, Method>)[method] as Method;
}

/** Options of a call. */
export interface CallOptions {
  /** The `authorization` header. An explicit undefined sends none. */
  readonly authorization?: string | undefined;
  /** The deadline; milliseconds since 1970. */
  readonly deadline?: number;
  /** Bytes to send instead of the encoded request. */
  readonly bytes?: Uint8Array;
}

/** A gRPC client of a core. */
export interface GrpcCaller {
  /** Calls `Service/Method`, by default with CORE_TOKEN. */
  call<Answer = Record<string, unknown>>(rpc: string, request?: object, options?: CallOptions): Promise<Answer>;
  /** Starts a server-streaming call. */
  stream<Answer>(
    rpc: string,
    request?: object,
    options?: CallOptions,
  ): AsyncIterable<Answer> & Pick<ClientReadableStream<Answer>, 'cancel'>;
  /** Starts a bidirectional call. */
  open(rpc: string, options?: Pick<CallOptions, 'authorization'>): ClientDuplexStream<object, object>;
  /** Starts a bidirectional call whose requests are written as encoded bytes. */
  openBytes(rpc: string): ClientDuplexStream<Buffer, object>;
  close(): void;
}

/** Creates a client for an address without a scheme. */
export function grpcCaller(
  address: string,
  channel: ChannelCredentials = credentials.createInsecure(),
  options: object = {},
): GrpcCaller {
  const client = new Client(address, channel, options);
  return {
    call<Answer>(rpc: string, request = {}, options: CallOptions = {}) {
      const { path, requestSerialize, responseDeserialize } = findMethod(rpc);
      const { deadline, bytes } = options;
      return new Promise<Answer>((resolve, reject) => {
        client.makeUnaryRequest(
          path,
          bytes ? () => Buffer.from(bytes) : requestSerialize,
          responseDeserialize,
          request,
          makeMetadata(options),
          deadline === undefined ? {} : { deadline },
          (error, answer) => (error ? reject(error) : resolve(answer as Answer)),
        );
      });
    },
    stream<Answer>(rpc: string, request = {}, options: CallOptions = {}) {
      const { path, requestSerialize, responseDeserialize } = findMethod(rpc);
      const { bytes } = options;
      const call = client.makeServerStreamRequest(
        path,
        bytes ? () => Buffer.from(bytes) : requestSerialize,
        responseDeserialize,
        request,
        makeMetadata(options),
        options,
      );
      return call as unknown as ClientReadableStream<Answer>;
    },
    open(rpc, options = {}) {
      const { path, requestSerialize, responseDeserialize } = findMethod(rpc);
      return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, makeMetadata(options));
    },
    openBytes(rpc) {
      const { path, responseDeserialize } = findMethod(rpc);
      return client.makeBidiStreamRequest(path, (bytes: Buffer) => bytes, responseDeserialize, makeMetadata({}));
    },
    close: () => client.close(),
  };
}

function makeMetadata(options: CallOptions): Metadata {
  const { authorization } = { authorization: `Bearer ${CORE_TOKEN}`, ...options };
  const metadata = new Metadata();
  if (authorization !== undefined) metadata.set('authorization', authorization);
  return metadata;
}

/** Encodes a request as this client sends it. */
export const requestBytes = (rpc: string, request: object): Buffer => findMethod(rpc).requestSerialize(request);

/** A refusal as a caller receives it. */
export interface ReceivedRefusal {
  /** The name of the gRPC status. */
  readonly code: string;
  readonly message: string;
  /** The next three come from google.rpc.ErrorInfo, and are absent without it. */
  readonly reason?: string;
  readonly domain?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  /** The faulty fields of google.rpc.BadRequest, in order. */
  readonly fields?: readonly string[];
}

/** Waits for a call to be refused, and decodes the refusal with its details. */
export async function findRefusal(call: Promise<unknown>): Promise<ReceivedRefusal> {
  const error = await call.then(
    (answer) => {
      throw new AssertionError({ message: `the call was not refused; its response is ${JSON.stringify(answer)}` });
    },
    (error: ServiceError) => error,
  );
  const [packed] = error.metadata?.get('grpc-status-details-bin') ?? [];
  if (!packed) return { code: status[error.code] ?? String(error), message: error.details };
  const decoded = decode<PackedStatus>('google.rpc.Status', packed as Buffer);
  // The status is sent twice, in the trailers and in the details.
  if (decoded.code !== error.code || decoded.message !== decodeURIComponent(error.details))
    throw new Error('the details belong to another status');
  return refusalIn(decoded);
}

/** Decodes a google.rpc.Status with its details. */
export function refusalIn({ code, message, details }: PackedStatus): ReceivedRefusal {
  const detail = <T>(type: string) => {
    const found = details.find(({ type_url }) => type_url === `type.googleapis.com/${type}`);
    return found && decode<T>(type, found.value);
  };
  const info = detail<{ reason: string; domain: string; metadata: Record<string, string> }>('google.rpc.ErrorInfo');
  const request = detail<{ fieldViolations: { field: string; description: string }[] }>('google.rpc.BadRequest');
  if (request?.fieldViolations.some(({ description }) => !description))
    throw new Error('a field violation has no description');
  return {
    code: status[code] ?? String(code),
    message,
    ...info,
    ...(request && { fields: request.fieldViolations.map(({ field }) => field) }),
  };
}

/** A google.rpc.Status with its details still packed. */
export interface PackedStatus {
  readonly code: number;
  readonly message: string;
  readonly details: readonly { readonly type_url: string; readonly value: Buffer }[];
}

const decode = <T>(type: string, bytes: Buffer) => (definitions[type] as Decoder).deserialize(bytes) as T;

/** Returns a valid request to create a lead, by default with a new idempotency key and a new contact. */
export function aCreateLeadRequest(studioId: string, overrides: object = {}) {
  return { studioId, ...aCreation(), ...overrides };
}

/** Returns a valid creation without its studio, for calls that take the studio from the API key. */
export function aCreation(overrides: object = {}): Creation {
  return {
    idempotencyKey: newId(),
    displayName: 'Ada Lovelace',
    contact: { email: `${newId()}@example.org` },
    ...overrides,
  };
}

/** The data of a creation. */
export interface Creation {
  readonly idempotencyKey: string;
  readonly displayName: string;
  readonly contact: object;
  readonly sourceId?: string;
  readonly note?: string;
}
