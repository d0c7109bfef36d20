import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { credentials, loadPackageDefinition, Metadata, type ServiceError } from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';
import type { ErrorInfo } from './types/google/rpc/ErrorInfo.ts';
import type { Status } from './types/google/rpc/Status.ts';
import type { ProtoGrpcType } from './types/lead_intake.ts';
import type { CreateLeadRequest } from './types/leadintake/v1/CreateLeadRequest.ts';
import type { CreateLeadResponse__Output } from './types/leadintake/v1/CreateLeadResponse.ts';
import type { Lead__Output } from './types/leadintake/v1/Lead.ts';
import type { ListLeadsResponse__Output } from './types/leadintake/v1/ListLeadsResponse.ts';

const { CORE_ADDRESS = '', CORE_TOKEN, STUDIO_ID: studioId = 'demo' } = process.env;

const definitions = loadSync(['leadintake/v1/lead_intake.proto', 'google/rpc/error_details.proto'], {
  includeDirs: ['proto', 'node_modules/google-proto-files'],
  defaults: true,
});
const { leadintake } = loadPackageDefinition(definitions) as unknown as ProtoGrpcType;
const leads = new leadintake.v1.LeadIntakeService(CORE_ADDRESS, credentials.createInsecure());

const metadata = new Metadata();
if (CORE_TOKEN) metadata.set('authorization', `Bearer ${CORE_TOKEN}`);

/** Makes a call with a deadline of five seconds. */
function call<Answer>(
  start: (options: { deadline: number }, done: (error: ServiceError | null, answer?: Answer) => void) => unknown,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    start({ deadline: Date.now() + 5000 }, (error, answer) => (error ? reject(error) : resolve(answer as Answer)));
  });
}

/** Returns why the service refused; undefined when it gave no reason, so that the outcome is unknown. */
function findReason(error: ServiceError): string | undefined {
  const [packed] = error.metadata?.get('grpc-status-details-bin') ?? [];
  if (!packed) return undefined;
  const decode = <T>(type: string, bytes: Buffer) =>
    (definitions[type] as MessageTypeDefinition<object, object>).deserialize(bytes) as T;
  const { details } = decode<{ details: { type_url: string; value: Buffer }[] } & Status>(
    'google.rpc.Status',
    packed as Buffer,
  );
  const info = details.find(({ type_url }) => type_url.endsWith('/google.rpc.ErrorInfo'));
  const { domain, reason } = info ? decode<ErrorInfo>('google.rpc.ErrorInfo', info.value) : {};
  return domain === 'leadintake' ? reason : undefined;
}

/** Creates a lead. Retries the same request while the outcome is unknown; the key prevents duplicates. */
async function create(request: CreateLeadRequest): Promise<CreateLeadResponse__Output> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await call((options, done) => leads.createLead(request, metadata, options, done));
    } catch (error) {
      if (findReason(error as ServiceError) || attempt === 4) throw error;
      await sleep(250 * 2 ** attempt * (1 + Math.random()));
    }
  }
}

async function* all(): AsyncGenerator<Lead__Output> {
  let pageToken = '';
  do {
    const page = await call<ListLeadsResponse__Output>((options, done) =>
      leads.listLeads({ studioId, pageSize: 2, pageToken }, metadata, options, done),
    );
    yield* page.leads;
    pageToken = page.nextPageToken;
  } while (pageToken);
}

try {
  const idempotencyKey = randomUUID();
  const contact = { email: `${idempotencyKey}@example.com` };
  const request = { studioId, idempotencyKey, displayName: 'Grace Hopper', contact };

  const created = await create(request);
  console.log(`created ${created.lead?.id}`);

  const again = await create(request);
  console.log(`${again.replayed ? 'replayed' : 'created'} ${again.lead?.id}`);

  await create({ ...request, displayName: 'Grace' }).catch((error) => console.log(`refused ${findReason(error)}`));

  let count = 0;
  for await (const _ of all()) count += 1;
  console.log(`listed ${count}`);
} catch (error) {
  console.error(`failed ${findReason(error as ServiceError) ?? error}`);
  process.exitCode = 1;
} finally {
  leads.close();
}
