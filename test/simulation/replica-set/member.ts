import { createServer, type Server, type Socket } from 'node:net';
import { BSON, type Document, Long, Timestamp } from 'mongodb';
import { commandKind, type Primary, run, type Statement } from './commands.ts';
import type { Change } from './data.ts';
import { AppliedLog, type Disk, type Entry } from './log.ts';
import { NotSimulated, Refusal } from './values.ts';
import type { Weather } from './weather.ts';
import { type Message, parseMessages, replyTo } from './wire.ts';

const HEARTBEAT_MS = 300;

/** How long a write to an idle and to a busy disk takes at most, and how often the disk is busy; milliseconds. */
const SYNC_MS = 2;
const BUSY_SYNC_MS = 100;
const BUSY_SHARE = 0.1;

/** How long a primary is idle before it writes an empty entry, which advances the cluster's time; milliseconds. */
const IDLE_MS = 10_000;

/** Messages between members. */
export type PeerMessage = { readonly term: number; readonly time: bigint } & (
  | { readonly kind: 'ask'; readonly isDry: boolean; readonly last: readonly [term: number, length: number] }
  | { readonly kind: 'vote'; readonly isDry: boolean; readonly isGranted: boolean }
  | {
      readonly kind: 'append';
      readonly after: number;
      readonly last: Entry | undefined;
      readonly entries: readonly Entry[];
      readonly commitPoint: number;
    }
  /** The log is sent if it differs from that of the primary. */
  | { readonly kind: 'appended'; readonly length: number; readonly log?: readonly Entry[] }
);

type Body<Message> = Message extends unknown ? Omit<Message, 'term' | 'time'> : never;

/** The other members, and the outside influences on a member. */
export interface Surroundings {
  readonly ports: readonly number[];
  readonly weather: Weather;
  readonly electionMs: number;
  send(to: number, message: PeerMessage): void;
  note(what: string): void;
  /** Called when a feature is not simulated, or in a state that no replica set can reach. */
  fail(error: Error): void;
}

/** A command that waits for an entry to be on a majority. */
interface Waiter {
  readonly isOver: () => boolean;
  readonly end: (how: 'over' | 'interrupted') => void;
}

/** Errors after which a driver retries a write. */
const RETRYABLE = [91, 189, 10107, 11602, 13435];

const notPrimary = (command: Document) =>
  commandKind(command).writes
    ? new Refusal(10107, 'NotWritablePrimary', 'not primary')
    : new Refusal(13435, 'NotPrimaryNoSecondaryOk', 'not primary and secondaryOk=false');

const interrupted = () =>
  new Refusal(11602, 'InterruptedDueToReplStateChange', 'operation was interrupted because of a change of state');

const expired = () => new Refusal(50, 'MaxTimeMSExpired', 'operation exceeded time limit');

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** The process of a member of a replica set. */
export class Member {
  readonly number: number;
  isPrimary = false;
  isStopped = false;
  readonly #disk: Disk;
  readonly #around: Surroundings;
  readonly #others: readonly number[];
  readonly #server: Server;
  readonly #connections = new Set<Socket>();
  readonly #processId = new BSON.ObjectId();
  #topologyVersion = 1;
  /** Send replies to `hello` when something changes. */
  readonly #watchers = new Set<() => void>();
  #primary: number | undefined;
  /** The number of the last entry that it knows to be on a majority. */
  #commitPoint = 0;
  #applied = new AppliedLog();
  #time = 0n;
  readonly #cursors = new Map<string, Document[]>();
  readonly #waiters = new Set<Waiter>();
  readonly #votes = new Set<number>();
  /** Whether it asks for votes (real), or whether it would get them (dry). */
  #candidacy: 'dry' | 'real' | undefined;
  /** The known number of entries of each other member, and the time of its last message. */
  readonly #lengths = new Map<number, number>();
  readonly #lastMessageAt = new Map<number, number>();
  /** Members to which entries are in flight. */
  readonly #inFlight = new Set<number>();
  #isSyncing = false;
  #electionTimer: NodeJS.Timeout | undefined;
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #wroteAt = 0;

  constructor(number: number, disk: Disk, around: Surroundings) {
    this.number = number;
    this.#disk = disk;
    this.#around = around;
    this.#others = around.ports.map((_, index) => index).filter((index) => index !== number);
    // Entries that were not on the disk are lost.
    disk.log.length = disk.synced;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  start(): void {
    this.#server.listen(this.#around.ports[this.number], '127.0.0.1');
    this.#awaitPrimary();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.#electionTimer);
    clearTimeout(this.#heartbeatTimer);
    this.#server.close();
    this.#disconnect();
  }

  #disconnect(): void {
    for (const socket of this.#connections) socket.destroy();
  }

  #note(what: string): void {
    this.#around.note(`member ${this.number + 1} ${what}`);
  }

  /* Elections. */

  #awaitPrimary(): void {
    clearTimeout(this.#electionTimer);
    this.#electionTimer = setTimeout(() => this.stand(), this.#around.electionMs * (1 + Math.random()));
  }

  /** @param isDry whether it first asks whether it would be elected, so that a disconnected member raises no term */
  stand(isDry = true): void {
    if (this.isPrimary || this.isStopped) return;
    this.#awaitPrimary();
    this.#candidacy = isDry ? 'dry' : 'real';
    this.#votes.clear();
    this.#votes.add(this.number);
    if (!isDry) {
      this.#disk.term += 1;
      this.#disk.votedFor = this.number;
    }
    for (const other of this.#others) this.#send(other, { kind: 'ask', isDry, last: this.#last() });
  }

  #last(): readonly [number, number] {
    const { log } = this.#disk;
    return [log.at(-1)?.term ?? 0, log.length];
  }

  #send(to: number, body: Body<PeerMessage>): void {
    this.#around.send(to, { ...body, term: this.#disk.term, time: this.#time } as PeerMessage);
  }

  receive(from: number, message: PeerMessage): void {
    const disk = this.#disk;
    if (message.time > this.#time) this.#time = message.time;
    if (message.term > disk.term) {
      disk.term = message.term;
      disk.votedFor = undefined;
      this.#stepDown(`it learns of term ${message.term}`);
    }
    if (message.kind === 'ask') {
      const [term, length] = this.#last();
      const isBehind = message.last[0] < term || (message.last[0] === term && message.last[1] < length);
      const isFree = message.isDry || disk.votedFor === undefined || disk.votedFor === from;
      const isGranted = message.term === disk.term && !isBehind && isFree && !this.isPrimary;
      if (isGranted && !message.isDry) {
        disk.votedFor = from;
        this.#awaitPrimary();
      }
      this.#send(from, { kind: 'vote', isDry: message.isDry, isGranted });
    } else if (message.term < disk.term) {
      // The sender is an earlier primary, which learns of the term.
      if (message.kind === 'append') this.#send(from, { kind: 'appended', length: 0 });
    } else if (message.kind === 'vote') {
      if (!message.isGranted || this.#candidacy !== (message.isDry ? 'dry' : 'real')) return;
      this.#votes.add(from);
      if (!this.#isMajority(this.#votes.size)) return;
      if (message.isDry) this.stand(false);
      else this.#becomePrimary();
    } else if (message.kind === 'append') this.#follow(from, message);
    else if (this.isPrimary) this.#acknowledged(from, message);
  }

  #isMajority(count: number): boolean {
    return count > this.#around.ports.length / 2;
  }

  #becomePrimary(): void {
    this.isPrimary = true;
    this.#candidacy = undefined;
    this.#primary = this.number;
    clearTimeout(this.#electionTimer);
    this.#lengths.clear();
    for (const other of this.#others) {
      // The first heartbeat tells the member its primary, and brings entries.
      this.#inFlight.add(other);
      this.#lastMessageAt.set(other, performance.now());
    }
    this.#note(`is primary of term ${this.#disk.term}`);
    this.#append(undefined);
    this.#changed();
    this.#heartbeatTimer = setTimeout(() => this.#beat(), Math.random() * HEARTBEAT_MS);
  }

  /** Gives up a candidacy, and steps down if it is the primary. */
  #stepDown(why: string): void {
    this.#candidacy = undefined;
    this.#awaitPrimary();
    if (!this.isPrimary) return;
    this.#note(`steps down: ${why}`);
    this.isPrimary = false;
    this.#primary = undefined;
    clearTimeout(this.#heartbeatTimer);
    for (const waiter of this.#waiters) waiter.end('interrupted');
    this.#changed();
  }

  /** Steps down at the operator's request, and does not stand again immediately. */
  stepDownOnRequest(): void {
    this.#stepDown('it is asked to');
  }

  #beat(): void {
    if (!this.isPrimary) return;
    const now = performance.now();
    const alive = this.#others.filter((other) => now - (this.#lastMessageAt.get(other) ?? 0) < this.#around.electionMs);
    if (!this.#isMajority(alive.length + 1)) {
      this.#stepDown('it reaches no majority');
      return;
    }
    if (now - this.#wroteAt > IDLE_MS) this.#append(undefined);
    this.#inFlight.clear();
    this.#replicate();
    this.#heartbeatTimer = setTimeout(() => this.#beat(), HEARTBEAT_MS);
  }

  /* Replication. */

  #append(change: Change | undefined, statement?: Statement): void {
    const { log, term } = this.#disk;
    const seconds = BigInt(Math.floor(Date.now() / 1000)) << 32n;
    this.#time = this.#time >= seconds ? this.#time + 1n : seconds + 1n;
    log.push({ term, time: this.#time, change, statement });
    this.#wroteAt = performance.now();
    this.#applied.catchUp(log);
    this.#sync();
    this.#replicate();
  }

  /** Writes the log to the disk soon. */
  #sync(): void {
    if (this.#isSyncing) return;
    this.#isSyncing = true;
    const withinMs = Math.random() < BUSY_SHARE ? BUSY_SYNC_MS : SYNC_MS;
    setTimeout(() => {
      this.#isSyncing = false;
      if (this.isStopped) return;
      const { log } = this.#disk;
      this.#disk.synced = log.length;
      if (this.isPrimary) this.#commit();
      else if (this.#primary !== undefined) this.#send(this.#primary, { kind: 'appended', length: log.length });
    }, Math.random() * withinMs);
  }

  #replicate(): void {
    for (const other of this.#others) {
      if (this.#inFlight.has(other)) continue;
      this.#inFlight.add(other);
      const { log } = this.#disk;
      const after = this.#lengths.get(other) ?? log.length - 1;
      const [last, entries] = [log[after - 1], log.slice(after)];
      this.#send(other, { kind: 'append', after, last, entries, commitPoint: this.#commitPoint });
    }
  }

  #follow(from: number, { after, last, entries, commitPoint }: PeerMessage & { readonly kind: 'append' }): void {
    const { log } = this.#disk;
    this.#awaitPrimary();
    if (this.#primary !== from) {
      this.#primary = from;
      this.#changed();
    }
    if (log.length < after || log[after - 1] !== last) {
      this.#send(from, { kind: 'appended', length: 0, log: [...log] });
      return;
    }
    const common = entries.findIndex((entry, index) => log[after + index] !== entry);
    if (common >= 0) {
      this.#rollBackTo(after + common);
      log.push(...entries.slice(common));
    }
    this.#advanceTo(Math.min(commitPoint, after + entries.length));
    if (common >= 0) this.#sync();
    else this.#send(from, { kind: 'appended', length: Math.min(after + entries.length, this.#disk.synced) });
  }

  #rollBackTo(length: number): void {
    const { log } = this.#disk;
    if (log.length <= length) return;
    if (length < this.#commitPoint) this.#around.fail(new Error('an entry on a majority is rolled back'));
    this.#note(`rolls back ${log.length - length} entries`);
    // The next primary applies it again from the first entry.
    this.#applied = new AppliedLog();
    log.length = length;
    this.#disk.synced = Math.min(this.#disk.synced, length);
    this.#cursors.clear();
    this.#disconnect();
  }

  #acknowledged(from: number, { length, log }: PeerMessage & { readonly kind: 'appended' }): void {
    const own = this.#disk.log;
    this.#lastMessageAt.set(from, performance.now());
    this.#inFlight.delete(from);
    if (log) {
      const different = log.findIndex((entry, index) => own[index] !== entry);
      this.#lengths.set(from, different < 0 ? Math.min(log.length, own.length) : different);
      this.#replicate();
      return;
    }
    this.#lengths.set(from, Math.max(length, this.#lengths.get(from) ?? 0));
    this.#commit();
    // These entries tell the member the new commit point, too.
    if (length < own.length) this.#replicate();
  }

  /** Commits entries that are on the disks of a majority, if the last of them is of this term. */
  #commit(): void {
    const { log, synced, term } = this.#disk;
    const lengths = [synced, ...this.#others.map((other) => this.#lengths.get(other) ?? 0)].sort((a, b) => b - a);
    const length = lengths[Math.floor(lengths.length / 2)] ?? 0;
    if (log[length - 1]?.term === term) this.#advanceTo(length);
  }

  #advanceTo(commitPoint: number): void {
    if (commitPoint <= this.#commitPoint) return;
    this.#commitPoint = commitPoint;
    for (const waiter of this.#waiters) if (waiter.isOver()) waiter.end('over');
  }

  /** Waits until a condition holds. @param untilMs when the command expires */
  async #until(isOver: () => boolean, untilMs: number): Promise<'over' | 'interrupted' | 'expired'> {
    if (isOver()) return 'over';
    let timer: NodeJS.Timeout | undefined;
    const { promise, resolve } = Promise.withResolvers<'over' | 'interrupted' | 'expired'>();
    const waiter: Waiter = { isOver, end: resolve };
    this.#waiters.add(waiter);
    if (Number.isFinite(untilMs)) timer = setTimeout(() => resolve('expired'), untilMs - performance.now());
    const how = await promise;
    clearTimeout(timer);
    this.#waiters.delete(waiter);
    return how;
  }

  /* Clients. */

  /** Replies to all clients that wait for a change of the topology. */
  #changed(): void {
    this.#topologyVersion += 1;
    for (const tell of [...this.#watchers]) tell();
  }

  #hello(): Document {
    const { ports } = this.#around;
    const hosts = ports.map((port) => `127.0.0.1:${port}`);
    const primary = this.#primary === undefined ? undefined : hosts[this.#primary];
    return {
      helloOk: true,
      ...{ setName: REPLICA_SET, setVersion: 1, hosts, me: hosts[this.number], secondary: !this.isPrimary },
      ...{ isWritablePrimary: this.isPrimary, ismaster: this.isPrimary },
      ...(primary && { primary }),
      ...(this.isPrimary && {
        electionId: new BSON.ObjectId(`7fffffff${this.#disk.term.toString(16).padStart(16, '0')}`),
      }),
      ...{ maxBsonObjectSize: 16_777_216, maxMessageSizeBytes: 48_000_000, maxWriteBatchSize: 100_000 },
      ...{ localTime: new Date(), logicalSessionTimeoutMinutes: 30, connectionId: 1, readOnly: false },
      ...{ minWireVersion: 0, maxWireVersion: 25, topologyVersion: this.#version() },
    };
  }

  #version(): Document {
    return { processId: this.#processId, counter: Long.fromNumber(this.#topologyVersion) };
  }

  #serve(socket: Socket): void {
    this.#connections.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#connections.delete(socket));
    // A client sends one command at a time over a connection.
    let queue = Promise.resolve();
    const take = (message: Message) => {
      queue = queue.then(() => this.#answer(socket, message)).catch((error) => this.#around.fail(error));
    };
    socket.on('data', parseMessages(take));
  }

  async #answer(socket: Socket, message: Message): Promise<void> {
    const { command } = message;
    const [name = ''] = Object.keys(command);
    if (/^(?:hello|ismaster)$/i.test(name)) {
      if (command.topologyVersion) this.#watch(socket, message);
      else socket.write(replyTo(message, this.#withTimes(command, { ...this.#hello(), ok: 1 })));
      return;
    }
    const loss = this.#around.weather.findLoss(name);
    if (loss === 'request') {
      socket.destroy();
      return;
    }
    const reply = replyTo(message, this.#withTimes(command, await this.#execute(name, command)));
    if (!message.wantsReply || socket.destroyed || this.isStopped) return;
    if (loss === undefined) socket.write(reply);
    else if (loss !== 'silence') socket.end(reply.subarray(0, Math.floor(loss.share * reply.length)));
  }

  /** Replies to `hello` when something has changed since the version that the client knows, or after a while. */
  #watch(socket: Socket, message: Message): void {
    const { topologyVersion, maxAwaitTimeMS } = message.command;
    const isOfEarlierProcess = !this.#processId.equals(topologyVersion.processId);
    let known = isOfEarlierProcess ? -1 : Number(topologyVersion.counter);
    let timer: NodeJS.Timeout | undefined;
    const end = () => {
      clearTimeout(timer);
      this.#watchers.delete(tell);
    };
    const tell = () => {
      clearTimeout(timer);
      if (socket.destroyed) {
        end();
        return;
      }
      known = this.#topologyVersion;
      const document = this.#withTimes(message.command, { ...this.#hello(), ok: 1 });
      socket.write(replyTo(message, document, !message.mayStream));
      if (message.mayStream) timer = setTimeout(tell, Number(maxAwaitTimeMS));
      else end();
    };
    socket.on('close', end);
    this.#watchers.add(tell);
    timer = setTimeout(tell, known === this.#topologyVersion ? Number(maxAwaitTimeMS) : 0);
  }

  /** Adds the times that make clients causally consistent. */
  #withTimes({ $clusterTime, readConcern }: Document, reply: Document): Document {
    const received = ($clusterTime?.clusterTime as Timestamp | undefined)?.toBigInt() ?? 0n;
    if (received > this.#time) this.#time = received;
    const { log } = this.#disk;
    const at = readConcern?.level === 'majority' ? this.#commitPoint : log.length;
    const signature = { hash: new BSON.Binary(Buffer.alloc(20)), keyId: Long.ZERO };
    return {
      ...reply,
      operationTime: new Timestamp(log[at - 1]?.time ?? 0n),
      $clusterTime: { clusterTime: new Timestamp(this.#time), signature },
    };
  }

  async #execute(name: string, command: Document): Promise<Document> {
    const { weather } = this.#around;
    const { maxTimeMS, writeConcern, txnNumber } = command;
    const untilMs = maxTimeMS ? performance.now() + Number(maxTimeMS) : Number.POSITIVE_INFINITY;
    let reply: Document;
    try {
      const kind = commandKind(command);
      const given = weather.takeReply(name);
      if (given) return given;
      await sleep(weather.findDelay(name));
      if (performance.now() > untilMs) throw expired();
      if (!kind.isOfServer) await this.#expectReadable(command, untilMs);
      reply = { ...(await run(this.#asPrimary(), command)), ok: 1 };
      if (kind.writes) {
        const writeConcernError = await this.#writeConcernError(writeConcern, untilMs);
        if (writeConcernError) reply = { ...reply, writeConcernError };
      }
    } catch (error) {
      if (error instanceof NotSimulated) this.#around.fail(error);
      else if (!(error instanceof Refusal)) throw error;
      const { code, codeName, message, details } = error as Refusal;
      reply = { ok: 0, code: code ?? 59, codeName: codeName ?? 'CommandNotFound', errmsg: message, ...details };
      if (RETRYABLE.includes(code)) reply = { ...reply, topologyVersion: this.#version() };
    }
    const isRetryable = RETRYABLE.includes(reply.writeConcernError?.code ?? reply.code);
    return { ...reply, ...(isRetryable && txnNumber !== undefined && { errorLabels: ['RetryableWriteError'] }) };
  }

  /** Waits until the state that a command reads is as new as the command requires. */
  async #expectReadable(command: Document, untilMs: number): Promise<void> {
    if (!this.isPrimary) throw notPrimary(command);
    const { level, afterClusterTime } = command.readConcern ?? {};
    if (afterClusterTime === undefined) return;
    const time = (afterClusterTime as Timestamp).toBigInt();
    const { log } = this.#disk;
    const isReadable = () => (log[(level === 'majority' ? this.#commitPoint : log.length) - 1]?.time ?? 0n) >= time;
    const how = await this.#until(isReadable, untilMs);
    if (how === 'interrupted') throw interrupted();
    if (how === 'expired') throw expired();
  }

  async #writeConcernError({ w = 'majority', j }: Document = {}, untilMs: number): Promise<Document | undefined> {
    const { length } = this.#disk.log;
    const isMajority = w === 'majority';
    if (!isMajority && Number(w) > 1) throw new NotSimulated(`the write concern ${w}`);
    if (!isMajority && !j) return undefined;
    const isOver = () => (isMajority ? this.#commitPoint : this.#disk.synced) >= length;
    const how = this.isPrimary ? await this.#until(isOver, untilMs) : 'interrupted';
    if (how === 'over') return undefined;
    return how === 'interrupted'
      ? { code: 189, codeName: 'PrimarySteppedDown', errmsg: 'the primary stepped down' }
      : { code: 50, codeName: 'MaxTimeMSExpired', errmsg: 'operation exceeded time limit' };
  }

  #asPrimary(): Primary {
    const member = this;
    return {
      data: this.#applied.data,
      cursors: this.#cursors,
      readAt: ({ readConcern }) => (readConcern?.level === 'majority' ? this.#commitPoint : this.#disk.log.length),
      append: (change, statement) => this.#append(change, statement),
      findResult: (transaction, id) => this.#applied.statement(transaction, id)?.result,
      async yield() {
        const { weather } = member.#around;
        if (weather.yields()) await sleep(0);
        if (!member.isPrimary) throw interrupted();
      },
    };
  }
}

export const REPLICA_SET = 'simulated';
