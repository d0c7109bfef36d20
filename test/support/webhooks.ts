import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished } from 'vitest';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { tokenHash } from '../../src/callers-file.ts';
import { anAuthority } from '../tools/certificates.ts';
import { type RunningProcess, readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { freePort } from '../tools/servers.ts';
import { arrangeStudio, type CoreClients, connectToCore } from './core-clients.ts';
import { startTestCore } from './grpc.ts';

export const aWebhookSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** A request that a receiver has got. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly leadId: string;
  readonly revision: bigint;
  readonly kinds: readonly string[];
}

/** The response of a receiver: a status, a status with headers, or no response at all. */
type Answer = number | 'nothing' | { readonly status: number; readonly headers: Record<string, string> };

/** A receiver of webhooks on this machine, over HTTPS, that verifies each request with the reference library. */
export interface WebhookReceiver {
  readonly url: string;
  /** The file of the authority that issued its certificate. */
  readonly caFile: string;
  readonly received: Received[];
  /** The number of requests that no secret in `secrets` verifies. */
  readonly unverified: () => number;
  readonly secrets: string[];
  /** Returns the answer, 204 by default. */
  answer: (request: Received) => Answer | Promise<Answer>;
}

export async function aWebhookReceiver(folder: string): Promise<WebhookReceiver> {
  const authority = await anAuthority('receivers');
  const { cert, key } = await authority.issue('localhost', 'server');
  const caFile = join(folder, 'receivers.pem');
  writeFileSync(caFile, authority.cert);
  let unverified = 0;
  const server = createServer({ cert, key }, async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    if (!receiver.secrets.some((secret) => isVerified(secret, body, request.headers))) unverified += 1;
    const { data } = JSON.parse(body);
    const got = {
      path: request.url ?? '',
      headers: request.headers,
      body,
      leadId: data.leadId,
      revision: BigInt(data.revision),
      kinds: data.kinds,
    };
    receiver.received.push(got);
    const answer = await receiver.answer(got);
    if (answer === 'nothing') return;
    const { status, headers } = typeof answer === 'number' ? { status: answer, headers: {} } : answer;
    response.writeHead(status, headers).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const receiver: WebhookReceiver = {
    url: `https://localhost:${port}/hooks`,
    caFile,
    received: [],
    unverified: () => unverified,
    secrets: [aWebhookSecret()],
    answer: () => 204,
  };
  return receiver;
}

function isVerified(secret: string, body: string, headers: IncomingHttpHeaders): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

/** A core with a studio and a consumer `hooks` of all changes from now on, and a receiver for its webhooks. */
export interface WebhookDeployment {
  /** The core, if it is a separate process. */
  readonly core: RunningProcess;
  /** Restarts the core at its address. */
  restartCore(): Promise<void>;
  readonly coreUrl: string;
  readonly databaseUrl: string;
  readonly crm: CoreClients;
  readonly studioId: string;
  readonly memberId: string;
  readonly receiver: WebhookReceiver;
  readonly relayToken: string;
  readonly endpointsFile: string;
  /** Writes the endpoints file. Takes changes of the receiver's endpoint, or the whole text. */
  putEndpoints(changes?: object | string): void;
  /** Starts a relay, optionally with a command prefix. */
  relay(env?: Record<string, string>, within?: readonly string[]): RunningProcess;
  createLead(email?: string): Promise<string>;
  /** Returns the number of leads with changes that the relay has not acknowledged. */
  waiting(): Promise<number>;
}

/**
 * @param settings the settings of a core in a separate process; without them, the core runs in this process
 * @param otherConsumers more consumers of all changes from now on, which the relay may have endpoints for
 */
export async function aWebhookDeployment({
  settings,
  otherConsumers = [],
}: {
  readonly settings?: Readonly<Record<string, string>>;
  readonly otherConsumers?: readonly string[];
} = {}): Promise<WebhookDeployment> {
  const folder = temporaryFolder();
  const [crmToken, relayToken] = [randomUUID(), randomUUID()];
  const callers = {
    crm: { may: ['crm', 'operator'], tokens: [{ sha256: tokenHash(crmToken) }] },
    relay: { may: ['feed'], consumers: ['hooks', ...otherConsumers], tokens: [{ sha256: tokenHash(relayToken) }] },
  };
  writeFileSync(join(folder, 'callers.json'), JSON.stringify({ callers }));
  const databaseUrl = `sqlite:${join(folder, 'leads.db')}`;
  const env = {
    DATABASE_URL: databaseUrl,
    CORE_CALLERS_FILE: join(folder, 'callers.json'),
    CORE_PORT: `${await freePort()}`,
    ...settings,
  };
  const startCore = () => run('src/main.ts', { env });
  let apart = settings && startCore();
  const coreUrl = apart ? await readAddress(apart) : await startWithin(env);
  const crm = connectToCore(coreUrl, crmToken);
  onTestFinished(() => crm.close());
  const { studioId, memberId } = await arrangeStudio(crm);
  for (const name of ['hooks', ...otherConsumers])
    await crm.consumers.createConsumer({ consumer: { name, allStudios: true }, start: ConsumerStart.NOW });
  const receiver = await aWebhookReceiver(folder);
  const endpointsFile = join(folder, 'endpoints.json');
  const deployment: WebhookDeployment = {
    get core() {
      return apart ?? expect.fail('the core runs in this process');
    },
    async restartCore() {
      apart = startCore();
      await readAddress(apart);
    },
    ...{ coreUrl, databaseUrl, crm, studioId, memberId, receiver, relayToken, endpointsFile },
    putEndpoints(changes = {}) {
      const endpoint = { url: receiver.url, secrets: receiver.secrets, allowPrivate: true };
      const text =
        typeof changes === 'string' ? changes : JSON.stringify({ endpoints: { hooks: { ...endpoint, ...changes } } });
      writeFileSync(`${endpointsFile}.next`, text);
      renameSync(`${endpointsFile}.next`, endpointsFile);
    },
    relay: (more = {}, within = []) =>
      run('relay/main.ts', {
        within,
        env: {
          RELAY_CORE_ADDRESS: coreUrl,
          RELAY_TOKEN: relayToken,
          RELAY_ENDPOINTS_FILE: endpointsFile,
          NODE_EXTRA_CA_CERTS: receiver.caFile,
          ...more,
        },
      }),
    async createLead(email = `${randomUUID()}@example.org`) {
      const contact = { value: { case: 'email', value: email } } as const;
      const { lead } = await crm.leads.createLead({
        studioId,
        idempotencyKey: randomUUID(),
        displayName: 'Ada',
        contact,
      });
      return lead?.id ?? '';
    },
    async waiting() {
      const { consumers } = await crm.consumers.listConsumers({});
      return consumers[0]?.waiting?.leadCount ?? 0;
    },
  };
  deployment.putEndpoints();
  return deployment;
}

/** Starts a core in this process and returns its address. The core stops at the end of the test. */
async function startWithin(env: Readonly<Record<string, string>>): Promise<string> {
  const core = await startTestCore({ CORE_TOKEN: undefined, ...env });
  onTestFinished(() => core.stop());
  return core.url;
}
