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
import { startCore } from '../../src/app.ts';
import { readCoreConfig } from '../../src/config.ts';
import { newId } from '../../src/domain/new-id.ts';

/** What callers of a core under test must present. */
export const CORE_TOKEN = 'the-token-of-the-tests-of-the-core';

/** A core of its own for a test, on a free port and a database that is gone afterwards. */
export interface TestCore extends Running {
  /** The port it listens on. */
  readonly port: number;
  /** The database file. */
  readonly path: string;
}

/** Starts a core; the settings given stand above those of every test. */
export async function startTestCore(env: Record<string, string> = {}): Promise<TestCore> {
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

// The contract as its authors wrote it, read by another implementation than the one under test.
const definitions = loadSync(
  [
    'leadintake/v1/lead_intake.proto',
    'leadintake/v1/exchange.proto',
    'leadintake/v1/api_key.proto',
    'leadintake/v1/directory.proto',
    'leadintake/v1/audit.proto',
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

function methodOf(rpc: string): Method {
  const [service = '', method = ''] = rpc.split('/');
  const found = definitions[service.includes('.') ? service : `leadintake.v1.${service}`] ?? {};
  return (found as Record<string, Method>)[method] as Method;
}

/** A bigger or smaller difference of one call from the others. */
export interface CallOptions {
  /** What goes into the `authorization` header; undefined: nothing. */
  readonly authorization?: string | undefined;
  /** When to give up; milliseconds since 1970. */
  readonly deadline?: number;
  /** Bytes to send in place of the request. */
  readonly bytes?: Uint8Array;
}

/** A gRPC client of a core. */
export interface GrpcCaller {
  /** Calls `Service/Method`, with the token of the tests unless told otherwise. */
  call<Answer = Record<string, unknown>>(rpc: string, request?: object, options?: CallOptions): Promise<Answer>;
  /** Begins a call that is answered with many messages. */
  stream<Answer>(
    rpc: string,
    request?: object,
    options?: Pick<CallOptions, 'deadline' | 'authorization'>,
  ): AsyncIterable<Answer> & Pick<ClientReadableStream<Answer>, 'cancel'>;
  /** Begins a call in which messages go both ways, until both sides have ended. */
  open(rpc: string, options?: Pick<CallOptions, 'authorization'>): ClientDuplexStream<object, object>;
  /** The same for who writes the bytes of the messages. */
  openBytes(rpc: string): ClientDuplexStream<Buffer, object>;
  close(): void;
}

/** Makes a client for an address without a scheme. */
export function grpcCaller(
  address: string,
  channel: ChannelCredentials = credentials.createInsecure(),
  options: object = {},
): GrpcCaller {
  const client = new Client(address, channel, options);
  return {
    call<Answer>(rpc: string, request = {}, options: CallOptions = {}) {
      const { path, requestSerialize, responseDeserialize } = methodOf(rpc);
      const { deadline, bytes } = options;
      return new Promise<Answer>((resolve, reject) => {
        client.makeUnaryRequest(
          path,
          bytes ? () => Buffer.from(bytes) : requestSerialize,
          responseDeserialize,
          request,
          metadataOf(options),
          deadline === undefined ? {} : { deadline },
          (error, answer) => (error ? reject(error) : resolve(answer as Answer)),
        );
      });
    },
    stream<Answer>(rpc: string, request = {}, options: Pick<CallOptions, 'deadline' | 'authorization'> = {}) {
      const { path, requestSerialize, responseDeserialize } = methodOf(rpc);
      const call = client.makeServerStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadataOf(options),
        options,
      );
      return call as unknown as ClientReadableStream<Answer>;
    },
    open(rpc, options = {}) {
      const { path, requestSerialize, responseDeserialize } = methodOf(rpc);
      return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadataOf(options));
    },
    openBytes(rpc) {
      const { path, responseDeserialize } = methodOf(rpc);
      return client.makeBidiStreamRequest(path, (bytes: Buffer) => bytes, responseDeserialize, metadataOf({}));
    },
    close: () => client.close(),
  };
}

function metadataOf(options: CallOptions): Metadata {
  const { authorization } = { authorization: `Bearer ${CORE_TOKEN}`, ...options };
  const metadata = new Metadata();
  if (authorization !== undefined) metadata.set('authorization', authorization);
  return metadata;
}

/** The bytes of a request as this client would send it. */
export const requestBytes = (rpc: string, request: object): Buffer => methodOf(rpc).requestSerialize(request);

/** A refused call as its caller sees it. */
export interface SeenRefusal {
  /** The name of the gRPC status. */
  readonly code: string;
  readonly message: string;
  /** Of google.rpc.ErrorInfo; absent when there is none. */
  readonly reason?: string;
  readonly domain?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Of google.rpc.BadRequest: the faulty fields, in order. */
  readonly fields?: readonly string[];
}

/** Waits for a call to be refused, and reads everything the refusal says. */
export async function refusalOf(call: Promise<unknown>): Promise<SeenRefusal> {
  const error = await call.then(
    (answer) => {
      throw new Error(`the call was not refused, but answered ${JSON.stringify(answer)}`);
    },
    (error: ServiceError) => error,
  );
  const [packed] = error.metadata?.get('grpc-status-details-bin') ?? [];
  if (!packed) return { code: status[error.code] ?? String(error), message: error.details };
  const told = decode<PackedStatus>('google.rpc.Status', packed as Buffer);
  // The status is told twice, and both must agree.
  if (told.code !== error.code || told.message !== decodeURIComponent(error.details))
    throw new Error('the details belong to another status');
  return refusalIn(told);
}

/** Everything that a google.rpc.Status says. */
export function refusalIn({ code, message, details }: PackedStatus): SeenRefusal {
  const detail = <T>(type: string) => {
    const found = details.find(({ type_url }) => type_url === `type.googleapis.com/${type}`);
    return found && decode<T>(type, found.value);
  };
  const info = detail<{ reason: string; domain: string; metadata: Record<string, string> }>('google.rpc.ErrorInfo');
  const request = detail<{ fieldViolations: { field: string; description: string }[] }>('google.rpc.BadRequest');
  if (request?.fieldViolations.some(({ description }) => !description)) throw new Error('a fault says nothing');
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

/** A valid request to create a lead; unless told, under a key and for a contact that are nobody else's. */
export function aCreateLeadRequest(studioId: string, overrides: object = {}) {
  return { studioId, ...aCreation(), ...overrides };
}

/** The same without the studio, where that is the API key's. */
export function aCreation(overrides: object = {}): Creation {
  return {
    idempotencyKey: newId(),
    displayName: 'Ada Lovelace',
    contact: { email: `${newId()}@example.org` },
    ...overrides,
  };
}

/** What a creation says of the lead. */
export interface Creation {
  readonly idempotencyKey: string;
  readonly displayName: string;
  readonly contact: object;
  readonly sourceId?: string;
  readonly note?: string;
}
