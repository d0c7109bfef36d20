import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { ErrorInfoSchema } from './gen/google/rpc/error_details_pb.ts';
import { type CreateLeadRequestSchema, LeadIntakeService } from './gen/leadintake/v1/lead_intake_pb.ts';

const { CORE_ADDRESS, CORE_TOKEN, STUDIO_ID: studioId = 'demo' } = process.env;

const presentToken: Interceptor = (next) => (request) => {
  if (CORE_TOKEN) request.header.set('authorization', `Bearer ${CORE_TOKEN}`);
  return next(request);
};
const leads = createClient(
  LeadIntakeService,
  createGrpcTransport({
    baseUrl: `http://${CORE_ADDRESS}`,
    interceptors: [presentToken],
    defaultTimeoutMs: 5000,
  }),
);

/** Returns why the service refused; undefined when it gave no reason, so that the outcome is unknown. */
function findReason(error: unknown): string | undefined {
  const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
  return info?.domain === 'leadintake' ? info.reason : undefined;
}

/** Creates a lead. Retries the same request while the outcome is unknown; the key prevents duplicates. */
async function create(request: MessageInitShape<typeof CreateLeadRequestSchema>) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await leads.createLead(request);
    } catch (error) {
      if (findReason(error) || attempt === 4) throw error;
      await sleep(250 * 2 ** attempt * (1 + Math.random()));
    }
  }
}

async function* all() {
  let pageToken = '';
  do {
    const page = await leads.listLeads({ studioId, pageSize: 2, pageToken });
    yield* page.leads;
    pageToken = page.nextPageToken;
  } while (pageToken);
}

try {
  const idempotencyKey = randomUUID();
  const contact = { value: { case: 'email', value: `${idempotencyKey}@example.com` } } as const;
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
  console.error(`failed ${findReason(error) ?? error}`);
  process.exitCode = 1;
}
