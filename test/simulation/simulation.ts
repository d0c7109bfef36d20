import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { v5 } from 'uuid';
import { MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { UNKNOWN_KEY } from '../crash/deployment.ts';
import { DAY_MS, times } from '../support/builders.ts';
import { BOTH_SCOPES, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { LEADS } from '../support/service.ts';
import { type EventOf, type Excused, History, type Lost, now } from './history.ts';
import type { Part, World } from './world.ts';

/** The number of studios. */
export const STUDIOS = 12;

/** The maximum time until all requests are served again after the last disturbance; milliseconds. */
const SERVES_WITHIN_MS = 40_000;

/** How often it is checked whether requests are served, normally and during the start; milliseconds. */
const POLL_MS = 25;
const START_POLL_MS = 500;

/** The CRM's options of a call. */
export const CRM_TIMEOUT = { timeoutMs: 6000 };

/** A key of a studio. */
export interface KnownKey {
  readonly apiKeyId: string;
  /** The current secret, or the last one. */
  secret: string;
  readonly mayRead: boolean;
  readonly mayCreate: boolean;
  /** Whether a call that may invalidate its secret is in flight, or has an unknown outcome. */
  mayBecomeInvalid: boolean;
}

/** A studio of the simulation. */
export interface KnownStudio {
  readonly id: string;
  readonly memberIds: readonly string[];
  readonly sourceIds: readonly string[];
  readonly keys: KnownKey[];
  /** Ids of leads that any party has received, in the order of receipt. */
  readonly leadIds: string[];
}

/** Who acted, and when that began; by default the CRM, now. */
interface Actor {
  readonly party?: string;
  readonly begin?: number;
}

/** One simulation: the world, its parties, and the history of everything that happened. */
export class Simulation {
  readonly world: World;
  readonly history = new History();
  readonly studios: readonly KnownStudio[];
  readonly crm: readonly CoreClients[];
  /** Unique to the simulation, so that its data can be recognized anywhere. */
  readonly name: string;
  /** A unique text in every name, email address and note that website servers send. It identifies personal data. */
  readonly personal: string;
  /** The key id of each secret, including invalid ones. */
  readonly keyBySecret = new Map<string, string>();
  /** How long a stopping process continues to serve; milliseconds. */
  readonly drainMs: number;
  #walks = 0;
  readonly #turns = new Map<string, Promise<unknown>>();
  #inTurn = 0;
  /** Disturbances in progress. `#disturbed` also has those after which not all requests are served yet. */
  readonly #disturbing = new Set<object>();
  readonly #disturbed = new Set<object>();

  constructor(world: World, name: string, drainMs: number) {
    this.world = world;
    this.name = name;
    this.drainMs = drainMs;
    this.personal = `p${this.uuid('personal').slice(-12)}`;
    this.crm = world.coreUrls.map((url) => connectToCore(url, world.coreToken));
    this.studios = times(STUDIOS, (index) => ({
      id: `studio-${name}-${index}`,
      memberIds: ['owner', 'admin'],
      sourceIds: times(2, (source) => this.uuid('source', index, source)),
      keys: [],
      leadIds: [],
    }));
  }

  /** Returns a UUID that is a function of the words and the simulation. */
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
    await this.untilServed(START_POLL_MS);
    if (this.history.violations.length > 0) throw new Error(this.history.violations.join());
    const { directory } = this.crmAt(0);
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
      await this.makeKey(studio, 'owner');
    }
  }

  /** Creates a key with both scopes, and returns its secret. Call it only while nothing is disturbed. */
  async makeKey(studio: KnownStudio, memberId: string): Promise<string> {
    const request = { studioId: studio.id, memberId, name: 'Website', scopes: [...BOTH_SCOPES] };
    const expireTime = timestampFromMs(Date.now() + 30 * DAY_MS);
    const { apiKey, secret } = await this.crmAt(0).apiKeys.createApiKey({ ...request, expireTime });
    const key = { apiKeyId: apiKey?.id ?? '', secret, mayRead: true, mayCreate: true, mayBecomeInvalid: false };
    this.addKey(studio, key, memberId);
    return secret;
  }

  addKey(studio: KnownStudio, key: KnownKey, issuer: string, { party = 'CRM', begin = now() }: Actor = {}): void {
    studio.keys.push(key);
    const { apiKeyId } = key;
    const span = { begin, end: now() };
    const made = { studioId: studio.id, apiKeyId, memberId: issuer, action: 'created', isDone: true } as const;
    this.history.add({ kind: 'keyAction', party, ...made, span });
    this.addSecret(key, { party, begin });
    this.put(`issuer of ${apiKeyId}`, issuer, { party, begin });
  }

  addSecret({ apiKeyId, secret }: KnownKey, actor: Actor = {}): void {
    this.keyBySecret.set(secret, apiKeyId);
    this.put(`secret ${secret}`, 'valid', actor);
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

  /** Runs functions of the same name one after another. */
  async inTurn<T>(name: string, run: () => Promise<T>): Promise<T> {
    this.#inTurn += 1;
    const turn = (this.#turns.get(name) ?? Promise.resolve()).then(run).finally(() => {
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

  /**
   * Runs a disturbance. Requests are excused until all are served again.
   *
   * @param run receives a function that sets a later time from which requests are excused
   */
  async disturb(
    what: string,
    loses: readonly Lost[],
    run: (excuseFrom: (ms: number) => void) => Promise<void>,
    excuses: Excused = 'any',
  ): Promise<void> {
    const [begin, token] = [now(), {}];
    let excusesFrom = begin;
    this.#disturbing.add(token);
    this.#disturbed.add(token);
    try {
      await run((ms) => {
        excusesFrom = ms;
      });
    } finally {
      this.#disturbing.delete(token);
      await this.untilServed();
      const span = { begin, end: now() };
      this.history.add({ kind: 'disturbance', party: 'fault injection', what, loses, excuses, excusesFrom, span });
      this.#disturbed.delete(token);
    }
  }

  /** Whether a disturbance is in effect. */
  get isDisturbed(): boolean {
    return this.#disturbed.size > 0;
  }

  /** Whether a disturbance has been in effect at any time since `begin`. */
  isDisturbedSince(begin: number): boolean {
    return this.isDisturbed || this.history.of('disturbance').some(({ span }) => span.end > begin);
  }

  /** Waits until the whole service works again; if that takes too long, a promise is broken. */
  async untilServed(everyMs = POLL_MS): Promise<void> {
    let giveUp = now() + SERVES_WITHIN_MS;
    for (;;) {
      const unserved = await this.#findUnserved();
      if (unserved.length === 0) return;
      if (this.#disturbing.size > 0) giveUp = now() + SERVES_WITHIN_MS;
      if (now() > giveUp) {
        this.history.fail(`not served ${SERVES_WITHIN_MS} ms after the last disturbance: ${unserved.join(', ')}`);
        return;
      }
      await sleep(everyMs);
    }
  }

  /** Runs all health checks, and describes those that fail. */
  async #findUnserved(): Promise<string[]> {
    // A new connection each time, because an existing one may lead to a process that no longer serves.
    const headers = { authorization: `Bearer ${UNKNOWN_KEY}`, connection: 'close' };
    const expectGateway = async (url: string, expected: number) => {
      const answer = await fetch(url, { headers, signal: AbortSignal.timeout(2000) });
      const { status } = answer;
      // Garbage collection would cancel an unread body, at a time that no seed determines.
      await answer.text();
      if (status !== expected) throw new Error(`${url} answers ${status}`);
    };
    const expectCore = async ({ directory }: CoreClients) => {
      const answer = await directory.getStudio({ studioId: 'unknown' }, { timeoutMs: 2000 }).catch(String);
      if (!/not.?found/i.test(`${answer}`)) throw new Error(`a core answers the CRM with ${answer}`);
    };
    const { urls } = this.world;
    const gateways = urls.flatMap((url) => [expectGateway(`${url}/readyz`, 200), expectGateway(`${url}${LEADS}`, 401)]);
    const checks = await Promise.allSettled([...gateways, ...this.crm.map(expectCore)]);
    return checks.flatMap((check) => (check.status === 'rejected' ? [String(check.reason)] : []));
  }

  /** Returns the CRM's client of one of the cores. */
  crmAt(index: number): CoreClients {
    return this.crm[index % this.crm.length] as CoreClients;
  }

  part(index: number): Part {
    return this.world.parts[index % this.world.parts.length] as Part;
  }

  /** Returns all writes to a register, including those that may not have taken effect. */
  listPuts(what: string): EventOf<'put'>[] {
    return this.history.of('put').filter((each) => each.what === what);
  }

  end(): void {
    for (const each of this.crm) each.close();
  }
}
