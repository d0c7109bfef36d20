import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { v5 } from 'uuid';
import { MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { NOBODYS_KEY } from '../crash/deployment.ts';
import { memoryMb } from '../crash/memory.ts';
import { DAY_MS, times } from '../support/builders.ts';
import { BOTH_SCOPES, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { LEADS } from '../support/service.ts';
import { type EventOf, History, type Lost, now } from './history.ts';
import type { Part, World } from './world.ts';

/** The number of studios. */
export const STUDIOS = 12;

/** The maximum time until all requests are served again after the last disturbance; milliseconds. */
const SERVES_WITHIN_MS = 40_000;

/** The CRM's request timeout; milliseconds. */
export const CRM_WAITS_MS = 6000;

/** A key of a studio, as the CRM knows it. */
export interface KnownKey {
  readonly apiKeyId: string;
  /** The current secret, or the last one. */
  secret: string;
  readonly mayRead: boolean;
  readonly mayCreate: boolean;
  /** Whether a call that may invalidate its secret is in flight, or has an unknown outcome. */
  mayDie: boolean;
}

/** A studio as all parties of a life know it. */
export interface KnownStudio {
  readonly id: string;
  readonly memberIds: readonly string[];
  readonly sourceIds: readonly string[];
  readonly keys: KnownKey[];
  /** Ids of leads that any party has received, in the order of receipt. */
  readonly leadIds: string[];
}

/** The party of an action and when it began; by default the CRM, now. */
interface Actor {
  readonly party?: string;
  readonly begin?: number;
}

/** One simulation: the world, its parties, and the history of everything that happened. */
export class Life {
  readonly world: World;
  readonly history = new History();
  readonly studios: readonly KnownStudio[];
  readonly crm: readonly CoreClients[];
  /** Unique per life, so that its data can be recognized anywhere. */
  readonly name: string;
  /** Part of every name, e-mail address and note that website servers send, and of nothing else: it marks personal data. */
  readonly personal: string;
  /** The key id of each secret, including invalid ones. */
  readonly keyBySecret = new Map<string, string>();
  /** How long a stopping process goes on serving; milliseconds. */
  readonly drainMs: number;
  #walks = 0;
  readonly #turns = new Map<string, Promise<unknown>>();
  #inTurn = 0;
  /** Disturbances in progress; `#disturbed` also has those that have ended but whose effects last. */
  readonly #disturbing = new Set<object>();
  readonly #disturbed = new Set<object>();

  constructor(world: World, name: string, drainMs: number) {
    this.world = world;
    this.name = name;
    this.drainMs = drainMs;
    this.personal = `p${this.uuid('personal').slice(-12)}`;
    this.crm = world.coreUrls.map((url) => connectToCore(url, world.coreToken, world.certificates?.caller));
    this.studios = times(STUDIOS, (index) => ({
      id: `studio-${name}-${index}`,
      memberIds: ['owner', 'admin'],
      sourceIds: times(2, (source) => this.uuid('source', index, source)),
      keys: [],
      leadIds: [],
    }));
  }

  /** Returns a UUID that is a function of the words and the life. */
  uuid(...words: readonly (string | number)[]): string {
    return v5([this.name, ...words].join(' '), v5.URL);
  }

  /** Returns a new number for a walk through the pages of a list. */
  newWalk(): number {
    this.#walks += 1;
    return this.#walks;
  }

  /** Creates the studios through the CRM, with their members, sources and first keys. */
  async begin(): Promise<void> {
    await this.untilServed();
    if (this.history.broken.length > 0) throw new Error(this.history.broken.join());
    const { directory, apiKeys } = this.crm[0] as CoreClients;
    for (const studio of this.studios) {
      const { id: studioId, memberIds, sourceIds } = studio;
      await directory.putStudio({ studio: { id: studioId, status: StudioStatus.ACTIVE, regionCode: 'DE' } });
      this.put(`status of ${studioId}`, 'active');
      this.put(`region of ${studioId}`, 'DE');
      for (const id of memberIds) {
        await directory.putMember({ member: { studioId, id, role: MemberRole.OWNER } });
        this.put(`role of ${id} in ${studioId}`, 'owner');
      }
      for (const id of sourceIds) {
        await directory.putLeadSource({ leadSource: { studioId, id, name: 'Form', enabled: true } });
        this.put(`source ${id} of ${studioId}`, 'enabled');
      }
      const request = { studioId, memberId: 'owner', name: 'Website', scopes: [...BOTH_SCOPES] };
      const expireTime = timestampFromMs(Date.now() + 30 * DAY_MS);
      const { apiKey, secret } = await apiKeys.createApiKey({ ...request, expireTime });
      this.knowKey(
        studio,
        { apiKeyId: apiKey?.id ?? '', secret, mayRead: true, mayCreate: true, mayDie: false },
        'owner',
      );
    }
  }

  knowKey(studio: KnownStudio, key: KnownKey, issuer: string, { party = 'CRM', begin = now() }: Actor = {}): void {
    studio.keys.push(key);
    const { apiKeyId } = key;
    const span = { begin, end: now() };
    const made = { studioId: studio.id, apiKeyId, memberId: issuer, deed: 'created', isDone: true } as const;
    this.history.add({ kind: 'keyDeed', party, ...made, span });
    this.knowSecret(key, { party, begin });
    this.put(`issuer of ${apiKeyId}`, issuer, { party, begin });
  }

  knowSecret({ apiKeyId, secret }: KnownKey, actor: Actor = {}): void {
    this.keyBySecret.set(secret, apiKeyId);
    this.put(`secret ${secret}`, 'alive', actor);
  }

  /** Records a write to a register; when `isDone` is false, it may take effect at any later time, or never. */
  put(
    what: string,
    value: string,
    { party = 'CRM', begin = now(), isDone = true }: Actor & { readonly isDone?: boolean } = {},
  ): void {
    const span = { begin, end: isDone ? now() : Number.POSITIVE_INFINITY };
    this.history.add({ kind: 'put', party, what, value, isDone, span });
  }

  /** Runs functions of the same name one after the other. */
  async inTurn<T>(name: string, happen: () => Promise<T>): Promise<T> {
    this.#inTurn += 1;
    const turn = (this.#turns.get(name) ?? Promise.resolve()).then(happen).finally(() => {
      this.#inTurn -= 1;
    });
    this.#turns.set(
      name,
      turn.catch(() => {}),
    );
    return turn;
  }

  /** The number of functions that run or wait in `inTurn`. */
  get inTurnCount(): number {
    return this.#inTurn;
  }

  /** Runs a disturbance: requests may fail until all are served again. */
  async disturb(what: string, loses: readonly Lost[], happen: () => Promise<void>): Promise<void> {
    const [begin, mark] = [now(), {}];
    this.#disturbing.add(mark);
    this.#disturbed.add(mark);
    try {
      await happen();
    } finally {
      this.#disturbing.delete(mark);
      await this.untilServed();
      this.history.add({ kind: 'disturbance', party: 'weather', what, loses, span: { begin, end: now() } });
      this.#disturbed.delete(mark);
    }
  }

  /** Runs an overload, during which the service may reject requests with a 503 that says that nothing was written. */
  async crowd(what: string, happen: () => Promise<void>): Promise<void> {
    const begin = now();
    await happen();
    this.history.add({ kind: 'crowd', party: 'holder', what, span: { begin, end: now() } });
  }

  /** Whether a disturbance has been in effect at any time since `begin`. */
  isDisturbedSince(begin: number): boolean {
    return this.#disturbed.size > 0 || this.history.of('disturbance').some(({ span }) => span.end > begin);
  }

  /** The current memory use of each process of the product. */
  memory(): { readonly name: string; readonly megabytes: number }[] {
    return this.world.processes().map(({ name, pid }) => ({ name, megabytes: memoryMb({ child: { pid } }) }));
  }

  /** Waits until the whole service works again; if that takes too long, a promise is broken. */
  async untilServed(): Promise<void> {
    let giveUp = now() + SERVES_WITHIN_MS;
    for (;;) {
      const unserved = await this.#unserved();
      if (unserved.length === 0) return;
      if (this.#disturbing.size > 0) giveUp = now() + SERVES_WITHIN_MS;
      if (now() > giveUp) {
        const told = unserved.join(', ');
        this.history.breaks(`not all is served ${SERVES_WITHIN_MS} ms after the last disturbance: ${told}`);
        return;
      }
      await sleep(25);
    }
  }

  /** Returns a text for each health check that fails. */
  async #unserved(): Promise<string[]> {
    const { urls, coreUrls } = this.world;
    const asked = [
      ...urls.flatMap((url) => [this.#answers(`${url}/readyz`, 200), this.#answers(`${url}${LEADS}`, 401)]),
      ...this.crm.map(({ directory }, index) =>
        directory.getStudio({ studioId: 'nobody' }, { timeoutMs: 2000 }).then(
          () => 'a studio of nobody is found',
          (error) => (/not.?found/i.test(String(error)) ? undefined : `${coreUrls[index]} tells the CRM ${error}`),
        ),
      ),
    ];
    return (await Promise.all(asked)).filter((told) => told !== undefined);
  }

  #answers(url: string, expected: number): Promise<string | undefined> {
    // A new connection each time: an existing one may lead to a process that no longer serves.
    const headers = { authorization: `Bearer ${NOBODYS_KEY}`, connection: 'close' };
    return fetch(url, { headers, signal: AbortSignal.timeout(2000) }).then(
      async (response) => {
        const text = await response.text();
        return response.status === expected ? undefined : `${url} answers ${response.status} ${text}`;
      },
      (error) => `${url} does not answer: ${error}`,
    );
  }

  part(index: number): Part {
    return this.world.parts[index % this.world.parts.length] as Part;
  }

  /** All writes to a register, including those that may not have taken effect. */
  putsOf(what: string): EventOf<'put'>[] {
    return this.history.of('put').filter((each) => each.what === what);
  }

  end(): void {
    for (const each of this.crm) each.close();
  }
}
