import { createRegistry, fromJson, type JsonObject, toJson } from '@bufbuild/protobuf';
import { createClient, type Transport } from '@connectrpc/connect';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import {
  ExchangeRequestSchema,
  ExchangeResponseSchema,
  ExchangeService,
} from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import {
  BatchCreateLeadsRequestSchema,
  BatchCreateLeadsResponseSchema,
  LeadIntakeService,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { Creation } from './grpc.ts';
import type { KeyOfStudio } from './grpc-studios.ts';
import type { WireResult } from './item-calls.ts';

/** A creation and the key, and so the studio, that it is for. */
export interface RequestedCreation {
  readonly of: KeyOfStudio;
  readonly creation: Creation;
}

/** The response to a creation, whichever method carried it. */
export interface Created {
  readonly lead: { readonly id: string; readonly displayName: string; readonly note?: string | null };
  readonly replayed: boolean;
}

/** A result as a gRPC client decodes it, or as JSON, which omits empty fields. */
export interface CreationResult extends Partial<WireResult> {
  readonly response?: { readonly lead: Created['lead']; readonly replayed?: boolean } | null;
  readonly body?: Buffer | string | null;
  readonly replayed?: boolean;
}

/** A method that carries many creations in a message. */
export interface BulkMethod {
  /** `Service/Method`. */
  readonly rpc: string;
  /** Builds a message that is valid both as JSON and for gRPC clients. */
  messageOf(requested: readonly RequestedCreation[]): object;
  answerOf(result: CreationResult): Created | undefined;
  /** Sends messages with Connect's client; yields each message of results as JSON. */
  send(transport: Transport, messages: AsyncIterable<object>): AsyncIterable<readonly CreationResult[]>;
}

const registry = createRegistry(ErrorInfoSchema, BadRequestSchema);

const BATCHES: BulkMethod = {
  rpc: 'LeadIntakeService/BatchCreateLeads',
  messageOf: (requested) => ({
    requests: requested.map(({ of, creation }) => ({ studioId: of.owner.studioId, ...creation })),
  }),
  answerOf: ({ response }) => (response ? { lead: response.lead, replayed: response.replayed ?? false } : undefined),
  async *send(transport, messages) {
    const client = createClient(LeadIntakeService, transport);
    const requests = mapped(messages, (message) => fromJson(BatchCreateLeadsRequestSchema, message));
    for await (const response of client.batchCreateLeads(requests)) {
      yield resultsIn(toJson(BatchCreateLeadsResponseSchema, response, { registry }));
    }
  },
};

const EXCHANGE: BulkMethod = {
  rpc: 'ExchangeService/Exchange',
  messageOf: (requested) => ({
    items: requested.map(({ of, creation }) => ({
      secretSha256: of.secretSha256.toString('base64'),
      createLead: creation,
    })),
  }),
  answerOf({ body, replayed = false }) {
    if (!body) return undefined;
    return { lead: JSON.parse(Buffer.from(body as string, 'base64').toString()).lead, replayed };
  },
  async *send(transport, messages) {
    const client = createClient(ExchangeService, transport);
    const requests = mapped(messages, (message) => fromJson(ExchangeRequestSchema, message));
    for await (const response of client.exchange(requests)) {
      yield resultsIn(toJson(ExchangeResponseSchema, response, { registry }));
    }
  },
};

export const BULK_METHODS: readonly BulkMethod[] = [BATCHES, EXCHANGE];

async function* mapped<To>(messages: AsyncIterable<object>, map: (message: JsonObject) => To): AsyncGenerator<To> {
  for await (const message of messages) yield map(message as JsonObject);
}

const resultsIn = (json: unknown) => (json as { readonly results: readonly CreationResult[] }).results;
