import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { forAllTests } from './for-all-tests.ts';
import { PLANTED, ROOT } from './processes.ts';

/** The path of leads. */
export const LEADS = '/v1/integrations/leads';

/** A studio with one owner, one enabled source, and one API key that the owner issued. */
export interface StudioWithKey {
  readonly studioId: string;
  readonly memberId: string;
  readonly sourceId: string;
  readonly apiKeyId: string;
  readonly secret: string;
}

export type Scope = 'leads.create' | 'leads.read';

/** A lead as the core has it. */
export interface KnownLead {
  readonly id: string;
  readonly displayName: string;
  readonly contact: string;
  readonly note: string | undefined;
}

/** Calls that arrange and inspect a service, for tests of clients and examples. */
export interface ServiceCalls {
  /** Creates a studio with a new id. @param scopes the scopes of its key; all by default */
  aStudioWithKey(options?: { readonly scopes?: readonly Scope[] }): Promise<StudioWithKey>;
  /** Creates a key of a member. Returns its secret. */
  aKey(owner: Pick<StudioWithKey, 'studioId' | 'memberId'>, scopes: readonly Scope[]): Promise<string>;
  /** Revokes the key of a studio. */
  revokeKey(studio: StudioWithKey): Promise<void>;
  suspendStudio(studioId: string): Promise<void>;
  /** Makes the owner of a studio a member who may issue no keys. */
  demoteOwner(studio: StudioWithKey): Promise<void>;
  /** Returns all leads of a studio, newest first. */
  readLeads(studioId: string): Promise<readonly KnownLead[]>;
  countLeads(studioId: string): Promise<number>;
  /** Creates leads with the given email addresses. Returns their ids. */
  importLeads(studioId: string, emails: readonly string[]): Promise<readonly string[]>;
  eraseLead(studioId: string, leadId: string): Promise<void>;
  /** Closes a lead as lost. */
  closeLead(studioId: string, leadId: string): Promise<void>;
  /** Stops the core but not the gateway. */
  stopCore(): Promise<void>;
  /** Starts the core again on the same port and database. */
  startCore(): Promise<void>;
}

/** A core and a gateway in a separate process, on a temporary database. */
export interface ServedService extends ServiceCalls {
  /** The gateway's address. */
  readonly url: string;
  /** Posts a creation, as `postLead` does. */
  post(secret: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** Reads a path below the leads: `/ID`, `?limit=5`. */
  get(secret: string, path?: string): Promise<Response>;
}

/** A call to the process of a service. The process sends its address and calls first, then a reply to each call. */
export interface ServiceRequest {
  readonly id: string;
  readonly call: keyof ServiceCalls;
  readonly args: readonly unknown[];
}
interface Served {
  readonly url: string;
  readonly calls: readonly (keyof ServiceCalls)[];
}
export type ServiceReply =
  | Served
  | { readonly id: string; readonly value: unknown }
  | { readonly id: string; readonly error: string };

/** Settings of the gateway. */
type Settings = Readonly<Record<string, string>>;

/**
 * Returns a service for all tests of a file. It starts before their own hooks and stops after them.
 *
 * @param settings a function if they depend on earlier hooks
 */
export const aServedService = (settings: Settings | (() => Settings) = {}): ServedService =>
  forAllTests(
    () => startServedService(typeof settings === 'function' ? settings() : settings),
    ({ stop }) => stop(),
  );

/** Starts a service in a separate process. The caller must stop it. Calls reject once it has ended. */
export async function startServedService(settings: Settings): Promise<ServedService & { stop(): Promise<void> }> {
  const child = fork(join(ROOT, 'test/support/serve.ts'), [JSON.stringify(settings)], {
    env: { ...process.env, ...PLANTED },
    execArgv: ['--disable-warning=ExperimentalWarning'],
    serialization: 'advanced',
  });
  const served = Promise.withResolvers<Served>();
  const waiting = new Map<string, PromiseWithResolvers<unknown>>();
  const ended = once(child, 'exit').then(([code]) => {
    for (const { reject } of [served, ...waiting.values()]) reject(new Error(`the service has ended with ${code}`));
  });
  child.on('message', (reply: ServiceReply) => {
    if ('url' in reply) return served.resolve(reply);
    const { resolve, reject } = waiting.get(reply.id) ?? {};
    waiting.delete(reply.id);
    if ('error' in reply) reject?.(new Error(reply.error));
    else resolve?.(reply.value);
  });
  const call =
    (name: keyof ServiceCalls) =>
    (...args: readonly unknown[]): Promise<unknown> => {
      const id = randomUUID();
      const answer = Promise.withResolvers<unknown>();
      waiting.set(id, answer);
      child.send({ id, call: name, args } satisfies ServiceRequest, (error) => error && answer.reject(error));
      return answer.promise;
    };
  const { url, calls } = await served.promise;
  return {
    ...(Object.fromEntries(calls.map((name) => [name, call(name)])) as unknown as ServiceCalls),
    url,
    post: (...given) => postLead(url, ...given),
    get: (secret, path = '') => fetch(`${url}${LEADS}${path}`, { headers: { authorization: `Bearer ${secret}` } }),
    async stop() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

/** Posts a creation to a gateway, by default with a new Idempotency-Key. Text is sent as given, other bodies as JSON. */
export const postLead = (
  gatewayUrl: string,
  secret: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> =>
  fetch(`${gatewayUrl}${LEADS}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
