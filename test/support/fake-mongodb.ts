import { createServer, type Socket } from 'node:net';
import { BSON, type Document, Long, type Timestamp } from 'mongodb';
import { onTestFinished } from 'vitest';
import { INDEXES } from '../../src/store/mongo/indexes.ts';
import { openMongoStore } from '../../src/store/mongo/mongo-store.ts';
import type { Store } from '../../src/store/store.ts';

/** The opcodes of the protocol. */
const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;

/** The flag of a message that expects no reply. */
const MORE_TO_COME = 2;

/** The replies of members of a replica set to `hello`. */
export const PRIMARY: Document = { setName: 'rs0', isWritablePrimary: true, secondary: false };
export const SECONDARY: Document = { setName: 'rs0', isWritablePrimary: false, secondary: true };

/** A server that speaks MongoDB's protocol and answers what a test wants, even if no real server would. */
export interface FakeMongoDb {
  /** Its address, without a database and without options. */
  readonly url: string;
  /** Each command that arrived, except `hello`. The name of its database is in `$db`. */
  readonly commands: Document[];
  /** The fields of the reply to `hello` that differ between servers. */
  hello: Document;
  /** Returns the reply to a command. Undefined stands for the reply of an empty database with all indexes. */
  answer: (command: Document) => Document | undefined;
  /** The time that each reply tells, as those of a replica set do. */
  operationTime: Timestamp | undefined;
  /** The number of open connections. */
  connections(): number;
  /** Breaks all connections. */
  disconnect(): void;
  /** Stops answering anything, on old and new connections. */
  silence(): void;
  stop(): Promise<void>;
}

/** Starts the server on a free port of the loopback interface. The caller must stop it. */
export async function startFakeMongoDb(hello: Document = PRIMARY): Promise<FakeMongoDb> {
  const sockets = new Set<Socket>();
  let isSilent = false;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 4 && received.length >= received.readInt32LE(0)) {
        const length = received.readInt32LE(0);
        const message = received.subarray(0, length);
        received = received.subarray(length);
        const reply = isSilent ? undefined : replyTo(message);
        if (reply) socket.write(reply);
      }
    });
  });

  function replyTo(message: Buffer): Buffer | undefined {
    const opcode = message.readInt32LE(12);
    const command = opcode === OP_QUERY ? queryIn(message) : commandIn(message);
    const reply = { ...answerTo(command), ...(fake.operationTime && timesAt(fake.operationTime)) };
    if (opcode === OP_QUERY) return encoded(message, OP_REPLY, Buffer.concat([REPLY_HEAD, BSON.serialize(reply)]));
    const wantsReply = (message.readInt32LE(16) & MORE_TO_COME) === 0;
    return wantsReply ? encoded(message, OP_MSG, Buffer.concat([Buffer.alloc(5), BSON.serialize(reply)])) : undefined;
  }

  function answerTo(command: Document): Document {
    if (/^(?:hello|ismaster)$/i.test(findName(command))) return { ...everyHello(fake.url), ...fake.hello, ok: 1 };
    fake.commands.push(command);
    return fake.answer(command) ?? emptyAnswer(command);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const fake: FakeMongoDb = {
    url: `mongodb://127.0.0.1:${port}`,
    commands: [],
    hello,
    answer: () => undefined,
    operationTime: undefined,
    connections: () => sockets.size,
    disconnect() {
      for (const socket of sockets) socket.destroy();
    },
    silence() {
      isSilent = true;
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      fake.disconnect();
      await closed;
    },
  };
  return fake;
}

/** Starts a server for the current test and opens a store on it. @param operationTime the time in all its replies */
export async function aStoreOnAFake(
  operationTime?: Timestamp,
): Promise<{ readonly fake: FakeMongoDb; readonly store: Store }> {
  const fake = await startFakeMongoDb();
  fake.operationTime = operationTime;
  const store = await openMongoStore(`${fake.url}/leads`);
  onTestFinished(async () => {
    await store.close();
    await fake.stop();
  });
  fake.commands.length = 0;
  return { fake, store };
}

/** Returns the name of a command, which is its first field. */
export const findName = (command: Document): string => Object.keys(command)[0] ?? '';

/** Returns the reply of a server that refuses a command. */
export const refusal = (code: number, codeName: string, errorLabels: readonly string[] = []): Document => ({
  ok: 0,
  code,
  codeName,
  errmsg: `refused: ${codeName}`,
  ...(errorLabels.length > 0 && { errorLabels }),
});

/** Returns the fields that every server replies to `hello`. */
function everyHello(url: string): Document {
  const me = new URL(url).host;
  return {
    hosts: [me],
    me,
    setVersion: 1,
    maxBsonObjectSize: 16_777_216,
    maxMessageSizeBytes: 48_000_000,
    maxWriteBatchSize: 100_000,
    localTime: new Date(),
    logicalSessionTimeoutMinutes: 30,
    connectionId: 1,
    minWireVersion: 0,
    maxWireVersion: 21,
    readOnly: false,
  };
}

/** Returns the reply of an empty database that has all indexes. */
function emptyAnswer(command: Document): Document {
  const name = findName(command);
  const makeCursor = (firstBatch: Document[]) => ({
    cursor: { id: Long.ZERO, ns: `${command.$db}.${command[name]}`, firstBatch },
    ok: 1,
  });
  if (name === 'find' || name === 'aggregate') return makeCursor([]);
  if (name === 'listIndexes') {
    return makeCursor(
      INDEXES.filter(({ collection }) => collection === command.listIndexes).map((index) => ({ ...index })),
    );
  }
  if (name === 'insert') return { n: command.documents.length, ok: 1 };
  if (name === 'update') return { n: command.updates.length, nModified: command.updates.length, ok: 1 };
  if (name === 'findAndModify') return { value: null, ok: 1 };
  return { ok: 1 };
}

/** Returns the fields of a reply that tell a replica set's time. */
export const timesAt = (operationTime: Timestamp): Document => ({
  operationTime,
  $clusterTime: {
    clusterTime: operationTime,
    signature: { hash: new BSON.Binary(Buffer.alloc(20)), keyId: Long.ZERO },
  },
});

/** Returns the command of an OP_MSG: its body, with the document sequences beside it as lists. */
function commandIn(message: Buffer): Document {
  let command: Document = {};
  let at = 20;
  while (at < message.length) {
    const length = message.readInt32LE(at + 1);
    if (message[at] === 0) command = { ...BSON.deserialize(message.subarray(at + 1, at + 1 + length)), ...command };
    else {
      const nameEnd = message.indexOf(0, at + 5);
      const name = message.toString('utf8', at + 5, nameEnd);
      const documents: Document[] = [];
      for (let from = nameEnd + 1; from < at + 1 + length; from += message.readInt32LE(from)) {
        documents.push(BSON.deserialize(message.subarray(from, from + message.readInt32LE(from))));
      }
      command = { ...command, [name]: documents };
    }
    at += 1 + length;
  }
  return command;
}

/** Returns the command of an OP_QUERY: drivers send their first `hello` in one. */
function queryIn(message: Buffer): Document {
  const nameEnd = message.indexOf(0, 20);
  const at = nameEnd + 9;
  return BSON.deserialize(message.subarray(at, at + message.readInt32LE(at)));
}

/** The fields of an OP_REPLY between the message's head and its only document. */
const REPLY_HEAD = Buffer.alloc(20);
REPLY_HEAD.writeInt32LE(1, 16);

function encoded(request: Buffer, opcode: number, body: Buffer): Buffer {
  const head = Buffer.alloc(16);
  head.writeInt32LE(head.length + body.length, 0);
  head.writeInt32LE(request.readInt32LE(4), 8);
  head.writeInt32LE(opcode, 12);
  return Buffer.concat([head, body]);
}
