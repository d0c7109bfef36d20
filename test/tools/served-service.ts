import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { PLANTED, ROOT } from './processes.ts';

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

/** The calls with which tests of clients and of examples arrange and inspect a service, besides its public API. */
export interface ServiceCalls {
  /** Creates a studio with a new id. @param scopes of its key; absent: all */
  aStudioWithKey(options?: { readonly scopes?: readonly Scope[] }): Promise<StudioWithKey>;
  /** Creates a key of a member. Returns its secret. */
  aKey(owner: Pick<StudioWithKey, 'studioId' | 'memberId'>, scopes: readonly Scope[]): Promise<string>;
  /** Revokes the key of a studio. */
  revokeKey(studio: StudioWithKey): Promise<void>;
  suspendStudio(studioId: string): Promise<void>;
  /** Makes the owner of a studio a member who may issue no keys. */
  demoteOwner(studio: StudioWithKey): Promise<void>;
  /** Returns all leads of a studio, newest first. */
  leadsOf(studioId: string): Promise<readonly KnownLead[]>;
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

/** A core and a gateway in a process of their own, on a temporary database. */
export interface ServedService extends ServiceCalls {
  /** The gateway's address. */
  readonly url: string;
  /** Posts a creation, by default with a new Idempotency-Key. Text is sent as given, other bodies as JSON. */
  post(secret: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** Reads a path below the leads: `/ID`, `?limit=5`. */
  get(secret: string, path?: string): Promise<Response>;
}

/** A call, as it is sent to the process of a service, and the messages that this sends. */
export interface ServiceRequest {
  readonly id: string;
  readonly call: keyof ServiceCalls;
  readonly args: readonly unknown[];
}
export type ServiceReply =
  | { readonly url: string }
  | { readonly id: string; readonly value: unknown }
  | { readonly id: string; readonly error: string };

/** Settings of the gateway. */
type Settings = Readonly<Record<string, string>>;

/**
 * A service for all tests of a file. It is started before their own hooks and stopped after them.
 *
 * @param settings a function when they depend on earlier hooks
 */
export function aServedService(settings: Settings | (() => Settings) = {}): ServedService {
  let service: Awaited<ReturnType<typeof start>> | undefined;
  beforeAll(async () => {
    service = await start(typeof settings === 'function' ? settings() : settings);
  });
  afterAll(() => service?.stop());
  // A proxy, so that a test file can declare the service as a constant.
  return new Proxy({} as ServedService, {
    get(_, name: string) {
      if (!service) throw new Error(`${name} is not available: the service is used in tests and hooks only`);
      const { url, call } = service;
      if (name === 'url') return url;
      const api = overHttp(url);
      return name in api ? api[name as keyof typeof api] : call(name as keyof ServiceCalls);
    },
  });
}

async function start(settings: Settings) {
  const child = fork(join(ROOT, 'test/support/serve.ts'), [JSON.stringify(settings)], {
    env: { ...process.env, ...PLANTED },
    execArgv: ['--disable-warning=ExperimentalWarning'],
    serialization: 'advanced',
  });
  const waiting = new Map<string, PromiseWithResolvers<unknown>>();
  const ended = once(child, 'exit');
  const [{ url }] = (await Promise.race([
    once(child, 'message'),
    ended.then(([code]) => {
      throw new Error(`the service has ended with ${code}`);
    }),
  ])) as [{ readonly url: string }];
  child.on('message', (reply: Exclude<ServiceReply, { readonly url: string }>) => {
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
      child.send({ id, call: name, args } satisfies ServiceRequest);
      return answer.promise;
    };
  const stop = async () => {
    child.disconnect();
    await ended;
  };
  return { url, call, stop };
}

const overHttp = (url: string): Pick<ServedService, 'post' | 'get'> => ({
  post: (secret, body, headers = {}) =>
    fetch(`${url}/v1/integrations/leads`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }),
  get: (secret, path = '') =>
    fetch(`${url}/v1/integrations/leads${path}`, { headers: { authorization: `Bearer ${secret}` } }),
});
